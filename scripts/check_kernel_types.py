"""Refuses what host and device compilers, or two sources of one program, may lay out differently.

    check_kernel_types.py [FILE...]

Looks at the headers of src/ unless files are given: `[[no_unique_address]]`, virtual bases, bit fields and `long
double` in members, and members inside `#if` ... `#endif`. nvcc lays out some of these in device code unlike the host;
members that depend on a macro differ between a library and the program that includes its headers.
"""

import pathlib
import re
import sys

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"')
ANYWHERE = [
    (re.compile(r"no_unique_address"), "[[no_unique_address]]: use WithGeometry, or a base class"),
    (re.compile(r"\b(?:class|struct)\s+\w+[^;{}()]*[:,]\s*(?:(?:public|protected|private)\s+)?virtual\b"),
     "a virtual base"),
]
IN_MEMBERS = [
    (re.compile(r"\w\s*:\s*\d+\s*(?:=.*)?$", re.S), "a bit field"),
    (re.compile(r"\blong\s+double\b"), "long double, which devices do not have"),
]
PARAMETERS = re.compile(r"\btemplate\s*<(?:[^<>]|<[^<>]*>)*>")
CLASS = re.compile(r"^(?:\s|requires\s*\(.*\)|alignas\([^()]*\))*(?:class|struct|union)\b", re.S)
NO_MEMBER = re.compile(
    r"^\s*(?:public|private|protected)\s*:|\b(?:using|typedef|friend|static_assert|static|template|enum|operator|return)\b"
    r"|[()]")


def blank(match):
    """White space in place of a match, so that lines keep their numbers."""
    return re.sub(r"[^\n]", " ", match[0])


def data_members(text):
    """Of each data member of a class: its line, its declaration, and whether it stands between #if and #endif."""
    scopes, statement, depth = [], "", 0
    for number, line in enumerate(text.split("\n"), 1):
        if re.match(r"\s*#\s*if", line):
            depth += 1
        elif re.match(r"\s*#\s*endif", line):
            depth -= 1
        if re.match(r"\s*#", line):
            continue
        for character in line:
            if character == "{":
                kind = ("class" if CLASS.search(PARAMETERS.sub("", statement)) else
                        "namespace" if re.search(r"\bnamespace\b", statement) else "other")
                scopes.append((kind, statement))
                statement = ""
            elif character == "}":
                kind, before = scopes.pop() if scopes else ("other", "")
                # What stood before an initialiser belongs to the member; what stood before a body is over.
                statement = before if kind == "other" and "(" not in before else ""
            elif character == ";":
                outside = all(kind in ("class", "namespace") for kind, _ in scopes)
                if depth and outside and re.match(r"\s*using\s+\w+\s*=", statement):
                    yield number, statement, True  # members may be of this type
                if scopes and scopes[-1][0] == "class" and statement.strip() and not NO_MEMBER.search(statement):
                    yield number, statement, depth > 0
                statement = ""
            elif character == ":" and re.search(r"\b(?:public|private|protected)\s*$", statement):
                statement = ""
            else:
                statement += character
        statement += "\n"


def complaints(path):
    text = TEXT.sub(blank, COMMENT.sub(blank, path.read_text(encoding="utf-8")))
    for pattern, what in ANYWHERE:
        for match in pattern.finditer(text):
            yield text.count("\n", 0, match.start()) + 1, what
    for number, declaration, conditional in data_members(text):
        if conditional:
            yield number, "a member that depends on a macro"
        for pattern, what in IN_MEMBERS:
            if pattern.search(declaration):
                yield number, what


def main(names):
    if any(name.startswith("-") for name in names):
        print(__doc__)
        return 0 if names in (["-h"], ["--help"]) else 2
    paths = [pathlib.Path(name) for name in names] or sorted(pathlib.Path("src").rglob("*.hpp"))
    found = [f"{path}:{number}: {what}" for path in paths for number, what in sorted(set(complaints(path)))]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
