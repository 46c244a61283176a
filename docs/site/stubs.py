"""The page of the Python package from its stubs and sources, in MyST Markdown."""

import ast
import textwrap


def public(node):
    return not node.name.startswith("_") or node.name in ("__init__", "__len__", "__getitem__", "__setitem__")


def text_of(node):
    return ["", *textwrap.dedent(ast.get_docstring(node) or "").strip().splitlines()]


def function(node, prefix):
    if any(ast.unparse(one).endswith(".setter") for one in node.decorator_list):
        return []
    property_ = any(ast.unparse(one) == "property" for one in node.decorator_list)
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    name = prefix + node.name
    signature = f"{name}: {ast.unparse(node.returns) if node.returns else ''}".rstrip(": ") if property_ else (
        f"{name}({ast.unparse(node.args)}){result}")
    return ["::::{container} api-member", "```python", signature, "```", *text_of(node), "::::", ""]


def class_(node):
    lines = [f"## class {node.name}", *text_of(node), ""]
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and public(member):
            lines += function(member, node.name + "." if member.name != "__init__" else node.name + ".")
    return lines


def page(files):
    """One page of all public classes and functions in `files`, a list of (title, path)."""
    complete = any(path.suffix == ".pyi" for _, path in files)
    what = "All public names of the package" if complete else (
        "Only what is written in Python: this site was made without a build of the module, which has most of it")
    lines = ["# Python reference", "", f"{what}; [Python](docs/guides/python.md) teaches them.", ""]
    for title, path in files:
        tree = ast.parse(path.read_text())
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and public(node)]
        if functions:
            lines += [f"## Functions of {title}", ""]
            for node in functions:
                lines += function(node, "")
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and public(node):
                lines += class_(node)
    return "\n".join(lines) + "\n"
