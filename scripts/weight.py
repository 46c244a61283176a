#!/usr/bin/env python3
"""Figures of weight that may only fall (the share of comments: only rise), compared with scripts/weight.json.

    scripts/weight.py [--update] [--words [PATTERN]]

    --update  records the present figures, unless one is worse
    --words   lists where phrases of scripts/words.txt are, or those of one PATTERN

A figure that has to get worse, for a new feature, is changed in weight.json by hand; the commit says why.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASELINE = ROOT / "scripts" / "weight.json"
LONG = ROOT / "scripts" / "long_files.txt"
WORDS = ROOT / "scripts" / "words.txt"
LONGEST = 400  # lines

HEADERS = {".hpp", ".cuh", ".h"}
SOURCES = {".cpp", ".cu"}
OTHERS = {".py", ".sh"}

# A comment, or a literal in which // and /* mean nothing.
TOKEN = re.compile(
    r'(?P<line>//[^\n]*)|(?P<block>/\*.*?\*/)'
    r'|R"(?P<delimiter>[^()\s\\]{0,16})\(.*?\)(?P=delimiter)"'
    r'|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z_])\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL,
)
# A definition: name, template arguments, final, bases; then its body. Not a template parameter, an enumeration or a
# declaration.
CLASS = re.compile(
    r"(?<!enum )(?<!friend )\b(?:class|struct)\s+(?:(?:alignas\s*\([^)]*\)|\[\[[^\]]*\]\]|[A-Z_]{6,})\s+)*"
    r"(?!final\b)[A-Za-z_][\w:]*\s*(?:<[^;{}()]*>)?\s*(?:final\s*)?(?::(?!:)[^;{}]*)?\{"
)


def files(folders: list[str], suffixes: set[str]) -> list[Path]:
    """The files of folders, links to folders not followed."""
    found = []
    for folder in folders:
        for path, names, entries in os.walk(ROOT / folder):
            names[:] = sorted(name for name in names if name not in ("build", "__pycache__"))
            found += [Path(path) / entry for entry in sorted(entries) if Path(entry).suffix in suffixes]
    return found


def split(text: str) -> tuple[str, list[tuple[int, str]]]:
    """The text without comments and contents of literals, and its comments with their line numbers."""
    comments = []
    code = []
    end = 0
    line = 1
    counted = 0
    for token in TOKEN.finditer(text):
        code.append(text[end : token.start()])
        end = token.end()
        if token["line"] or token["block"]:
            line += text.count("\n", counted, token.start())
            counted = token.start()
            comments += [(line + i, part) for i, part in enumerate(token[0].split("\n"))]
            code.append("\n" * token[0].count("\n"))
        else:
            code.append('""' + "\n" * token[0].count("\n"))
    code.append(text[end:])
    return "".join(code), comments


def installed_headers() -> int:
    """Headers named by set(headers ...) in the lists of src: what the file sets HEADERS install."""
    count = 0
    for path in sorted((ROOT / "src").rglob("CMakeLists.txt")):
        for block in re.findall(r"set\(headers\s(.*?)\)", path.read_text(), re.DOTALL):
            count += len(re.findall(r"^\s*[^#\s]+\.(?:hpp|cuh|h)\b", block, re.MULTILINE))
    return count


def first_program() -> int:
    """Lines of the first C++ program of the README."""
    block = re.search(r"^```cpp\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    return block[1].count("\n") if block else 0


def prose(text: str) -> list[tuple[int, str]]:
    """The lines of a page that are no code, with their numbers."""
    lines = []
    code = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            code = not code
        elif not code:
            lines.append((number, line))
    return lines


def is_test(name: str) -> bool:
    return name.startswith("test/") or "/tests/" in name or Path(name).stem.endswith("Test")


def check_long(lengths: dict[str, int]) -> tuple[int, list[str]]:
    """The number of long files, and what is wrong with the list of reasons."""
    reasons = {}
    for line in LONG.read_text().split("\n"):
        if line.strip() and not line.startswith("#"):
            name, _, reason = line.partition(" | ")
            reasons[name.strip()] = reason.strip()
    long = {name: length for name, length in lengths.items() if length > LONGEST}
    problems = [
        f"{name} has {length} lines: divide it, or name it in scripts/long_files.txt with a reason"
        for name, length in long.items()
        if not reasons.get(name)
    ]
    problems += [f"scripts/long_files.txt: {name} is not longer than {LONGEST} lines" for name in reasons.keys() - long]
    return len(long), problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="record the present figures, unless one is worse")
    parser.add_argument("--words", nargs="?", const="", metavar="PATTERN", help="list where phrases are")
    options = parser.parse_args()

    phrases = []
    for line in WORDS.read_text().split("\n"):
        if line.strip() and not line.startswith("#"):
            pattern, _, instead = line.rpartition(" | ")
            phrases.append((re.compile(pattern, re.IGNORECASE), instead, pattern))
    any_phrase = re.compile("|".join(f"(?:{pattern})" for _, _, pattern in phrases), re.IGNORECASE)

    hits = {pattern: 0 for _, _, pattern in phrases}
    where = []

    def look(name: str, lines: list[tuple[int, str]]) -> None:
        for number, line in lines:
            if not any_phrase.search(line):
                continue
            for expression, instead, pattern in phrases:
                count = len(expression.findall(line))
                hits[pattern] += count
                if count and options.words in ("", pattern):
                    where.append(f"{name}:{number}: {line.strip()}  [{instead}]")

    classes = code_lines = comment_lines = 0
    lengths = {}
    for path in files(["src", "test"], HEADERS | SOURCES):
        name = str(path.relative_to(ROOT))
        text = path.read_text(errors="replace")
        lengths[name] = text.count("\n")
        code, comments = split(text)
        look(name, comments)
        if name.startswith("src/"):
            with_code = sum(1 for line in code.split("\n") if line.strip())
            code_lines += with_code
            comment_lines += sum(1 for line in text.split("\n") if line.strip()) - with_code
            if path.suffix in HEADERS:
                classes += len(CLASS.findall(code))
    for path in sorted((ROOT / "docs").rglob("*.md")):
        look(str(path.relative_to(ROOT)), prose(path.read_text()))
    for path in files(["src", "bench", "cases", "python", "scripts", "docs"], HEADERS | SOURCES | OTHERS):
        lengths.setdefault(str(path.relative_to(ROOT)), path.read_text(errors="replace").count("\n"))
    long, problems = check_long({name: length for name, length in lengths.items() if not is_test(name)})

    if options.words is not None:
        print(*where, sep="\n")
        print(*(f"{count:6} {pattern}" for pattern, count in sorted(hits.items(), key=lambda hit: -hit[1])), sep="\n")
        return 0

    share = round(comment_lines / (comment_lines + code_lines), 4)
    figures = {
        "classes in headers of src": classes,
        "installed headers": installed_headers(),
        "lines of code of src": code_lines,
        "comments in src, share of lines": share,
        "lines of the first program of README": first_program(),
        f"files of more than {LONGEST} lines": long,
        "phrases of scripts/words.txt": sum(hits.values()),
    }
    before = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    worse = []
    for name, value in figures.items():
        old = before.get(name, value)
        mark = ""
        if value != old:
            better = value > old if isinstance(value, float) else value < old
            mark = f" (was {old})"
            if not better:
                worse.append(f"{name}: {value}, and {old} in scripts/weight.json")
        print(f"{value:>8} {name}{mark}")
    print(*problems, *worse, sep="\n", end="\n" if problems or worse else "")
    if options.update and not worse and not problems:
        BASELINE.write_text(json.dumps(figures, indent=2) + "\n")
    return 1 if worse or problems else 0


if __name__ == "__main__":
    sys.exit(main())
