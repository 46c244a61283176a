"""Names of ours in tables of pages for newcomers exist: the words in the second column, looked up in the headers, or in
the Python package where the heading of the first column says "in Python".

usage: check_names.py SOURCE PAGE...
"""

import pathlib
import re
import sys


def main(source, *pages):
    headers = "\n".join(path.read_text() for path in pathlib.Path(source, "src").rglob("*.hpp"))
    variables = pathlib.Path(source, "docs/reference/settings.md").read_text()
    known = set(re.findall(r"\w+", headers)) | set(re.findall(r"\b(DNDS_\w+)", variables))
    wrong = []
    python = [path for kind in ("src/*.cpp", "dnds/*.py") for path in pathlib.Path(source, "python").glob(kind)]
    known_python = set(re.findall(r"\w+", "\n".join(path.stem + " " + path.read_text() for path in python)))
    for page in pages:
        table = known
        for number, line in enumerate(pathlib.Path(source, page).read_text().splitlines(), 1):
            if not line.startswith("|"):
                table = known
            if not line.startswith("| "):
                continue
            if "in Python |" in line:
                table = known_python
            ours = re.split(r"(?<!\\)\|", line)[2]
            for code in re.findall(r"`([^`]*)`(?! is removed)", ours):
                code = re.sub(r'"[^"]*"', "", code)
                names = re.findall(r"[A-Za-z_]{4}\w*", code)
                wrong += [f"{page}:{number}: there is no {name}" for name in names if name not in table]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main(*sys.argv[1:])
