"""Runs the code of a notebook, cell by cell in one namespace, and compares what it shows with the outputs stored there:
the text that is printed, and the last expression of a cell. Pictures are drawn, but not compared.

python3 notebook.py FILE.ipynb [--update]    (--update stores the outputs, for documents)
"""

import ast
import base64
import contextlib
import io
import json
import pathlib
import sys


def run_cell(source, namespace):
    """What a cell prints, and the value of its last expression or None."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), namespace)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), namespace) if last else None
    return printed.getvalue(), value


def outputs_of(printed, value, number):
    """The same as a notebook stores it."""
    outputs = []
    if printed:
        outputs.append({"name": "stdout", "output_type": "stream", "text": printed})
    if value is not None:
        data = {"text/plain": repr(value)}
        if hasattr(value, "savefig"):
            picture = io.BytesIO()
            value.savefig(picture, format="png", dpi=60, metadata={"Software": None})
            data = {"image/png": base64.b64encode(picture.getvalue()).decode(), "text/plain": "<Figure>"}
        outputs.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return outputs


def text_of(outputs):
    """What can be compared: all but pictures. A notebook may store text as a list of lines."""
    texts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs]
    return ["".join(text) for text in texts]


def main(path, update=False):
    path = pathlib.Path(path)
    notebook = json.loads(path.read_text())
    namespace = {"__name__": "__main__"}
    number = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        number += 1
        outputs = outputs_of(*run_cell("".join(cell["source"]), namespace), number)
        if update:
            cell.update(execution_count=number, outputs=outputs)
        elif text_of(outputs) != text_of(cell["outputs"]):
            shown, stored = ("\n".join(text_of(each)) for each in (outputs, cell["outputs"]))
            sys.exit(f"{path}, cell {number} shows\n{shown}\nbut stores\n{stored}\n(notebook.py --update stores it)")
    if update:
        path.write_text(json.dumps(notebook, indent=1) + "\n")
    print(f"{number} cells of {path.name} show what is stored")


if __name__ == "__main__":
    main(sys.argv[1], "--update" in sys.argv)
