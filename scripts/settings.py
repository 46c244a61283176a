#!/usr/bin/env python3
"""Writes the tables of docs/reference/settings.md from sources that read the environment, and euler's JSON schema.

    settings.py [--check]

--check  change nothing; fail where the page is stale, a variable is read that no comment describes, or a key of the
         schema has no description

A variable is described in a comment of the source that reads it, from a line on that begins with its name:

    NAME=VALUES: meaning         VALUES: words or numbers separated by |, or a placeholder in capitals
    NAME, NAME: meaning

The meaning ends with the comment or an empty line of it. "docs/folder/page.md#part" in it becomes a link.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/reference/settings.md"
LIBRARY = "src/DNDS/Base/Environment.hpp"
SCHEMA = "cases/euler/euler.schema.json"
NAME = r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*"
ENTRY = re.compile(rf"({NAME}(?:, {NAME})*)(?:=([^\s:]+))?: (\S.*)")
CALLS = r"(?:getenv|textOf|numberOf|switchOf|countOf|environment|environmentInt|environ\.get)\("
READS = (re.compile(rf'(?:{CALLS}|environ\[)"({NAME})"'), re.compile(r"\$\{?(DNDS_[A-Z0-9_]+)"))
# Kept by others: the system, compilers and CUDA.
FOREIGN = {"PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "CXX", "CUDA_HOME", "CUDA_PATH", "OPAL_PREFIX", "OUT"}


def sources():
    """The files that may read or describe variables: of git, else of an archive that was unpacked."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=False,
                            capture_output=True, text=True).stdout.split()
    listed = listed or [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if ROOT / "build" not in path.parents]
    return [name for name in sorted(set(listed)) if (ROOT / name).is_file() and name != "scripts/settings.py"
            and (name.endswith((".cpp", ".hpp", ".cu", ".py", ".sh")) or name == ".ci/run")]


def comments(text, python):
    """Paragraphs of comments, and of Python's docstrings, each as one line."""
    marks = r"^[ \t]*(?:#!?|//[/!]?)(?= |$)(.*)$"
    if python:
        for docstring in re.findall(r'"""(.*?)"""', text, re.S):
            yield from paragraphs(docstring.splitlines())
    block = []
    for line in text.splitlines():
        match = re.match(marks, line)
        if match:
            block.append(match[1])
        elif block:
            yield from paragraphs(block)
            block = []
    yield from paragraphs(block)


def paragraphs(lines):
    """An empty line, or one that begins an entry, begins another paragraph."""
    words = []
    for line in [*lines, ""]:
        line = line.strip()
        if words and (not line or (ENTRY.match(line) and not words[-1].endswith(","))):
            yield " ".join(words)
            words = []
        if line:
            words.append(line)


def described(names):
    """(names, values, meaning, file) of all variables that comments describe."""
    for name in names:
        text = (ROOT / name).read_text()
        for paragraph in comments(text, name.endswith(".py")):
            match = ENTRY.match(paragraph)
            if match and ("_" in match[1] or match[2]):
                yield match[1].split(", "), match[2] or "", match[3], name


def reads(names):
    """Each variable that a source reads, with the first one that does."""
    found = {}
    for name in names:
        text = (ROOT / name).read_text()
        for pattern in READS[: 2 if name.endswith((".sh", "run")) else 1]:
            for variable in pattern.findall(text):
                found.setdefault(variable, name)
    return found


def slug(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def linked(text):
    """docs/folder/page.md#part as a link that is named after the part or the page."""

    def link(match):
        headings = re.findall(r"^#+ (.*)$", (ROOT / "docs" / match[1]).read_text(), re.M)
        part = match[2] or ""
        named = [one for one in headings if slug(one) == part[1:]] if part else headings[:1]
        if not named:
            sys.exit(f"settings.py: there is no part {part} in docs/{match[1]}")
        return f"[{named[0]}]({os.path.relpath(ROOT / 'docs' / match[1], PAGE.parent)}{part})"

    return re.sub(r"`?docs/([\w/-]+\.md)(#[\w-]+)?`?", link, text).replace("|", "\\|")


def values_of(text):
    if not text:
        return ""
    if re.fullmatch(r"[A-Z]{3,}", text):
        return "a " + text.lower() if text not in ("SECONDS", "WORDS") else text.lower()
    return ", ".join(one.lower() if one == "NUMBER" else f"`{one}`" for one in text.split("|"))


def table(head, rows):
    return "\n".join([f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(row)} |" for row in rows)])


def environment(entries, own):
    """Of the library: its own variables, or those of others that it reads."""
    rows = [(", ".join(f"`{one}`" for one in names), values_of(values), linked(meaning))
            for names, values, meaning, file in entries
            if file == LIBRARY and names[0].startswith("DNDS_") == own]
    return table(("variable", "values", "meaning"), rows)


def of_tests(entries):
    rows = [(", ".join(f"`{one}`" for one in names), values_of(values), linked(meaning),
             f"[{pathlib.Path(file).name}](../../{file})")
            for names, values, meaning, file in entries if file != LIBRARY]
    return table(("variable", "values", "meaning", "read by"), sorted(rows))


class Schema:
    def __init__(self, path):
        self.content = json.loads((ROOT / path).read_text())
        self.missing = []

    def resolved(self, entry):
        """The entry that a $ref stands for, changed by what stands beside it; and the name of an object."""
        if "$ref" not in entry:
            return entry, None
        name = entry["$ref"].rsplit("/", 1)[1]
        target = self.content["$defs"][name]
        beside = {key: value for key, value in entry.items() if key != "$ref"}
        return {**target, **beside}, name if target.get("type") == "object" else None

    def kind(self, entry):
        entry, named = self.resolved(entry)
        if named:
            return f"[{named}](#{named})"
        if "enum" in entry:
            return ", ".join(f"`{one}`" for one in entry["enum"])
        if "oneOf" in entry:
            return " or ".join(self.kind(one) if one.get("type") != "object" else "object" for one in entry["oneOf"])
        kind = entry.get("type", "")
        if kind == "array":
            low, high = entry.get("minItems"), entry.get("maxItems")
            return f"list of {f'{low} to {high} ' if low else ''}{self.kind(entry['items'])}"
        limits = [f"{sign} {entry[key]}" for key, sign in (("exclusiveMinimum", ">"), ("minimum", "≥"),
                                                           ("exclusiveMaximum", "<"), ("maximum", "≤")) if key in entry]
        return " ".join([{"string": "text", "boolean": "`true`, `false`"}.get(kind, kind), ", ".join(limits)]).strip()

    def rows(self, entry, path):
        for key, value in entry.get("properties", {}).items():
            if key == "$schema":
                continue
            value, named = self.resolved(value)
            place = f"{path}{key}"
            if not value.get("description"):
                self.missing.append(place)
            default = f"`{json.dumps(value['default'])}`" if "default" in value else ""
            if key in entry.get("required", []):
                default = "required"
            kind = f"[{named}](#{named})" if named else self.kind(value)
            yield f"`{place}`", kind, default, value.get("description", "").replace("|", "\\|")
            if not named:
                yield from self.rows(value, place + ".")
                for other in value.get("oneOf", []):
                    yield from self.rows(other, place + ".")
        other = entry.get("additionalProperties")
        for choice in other.get("oneOf", [other]) if isinstance(other, dict) else []:
            yield from self.rows(choice, f"{path}NAME.")

    def section(self, name, entry, path):
        lines = [f"### {name}", "", entry.get("description", "").rstrip(".") + "." if "description" in entry else ""]
        choices = [one["required"] for one in entry.get("oneOf", []) if "required" in one]
        if choices:
            lines[-1] = (lines[-1] + " One of " + ", ".join(f"`{', '.join(one)}`" for one in choices) + ".").strip()
        return "\n".join([*lines, *([""] if lines[-1] else []),
                          table(("key", "values", "default", "meaning"), self.rows(entry, path))])

    def text(self):
        required = self.content["required"]
        parts = ["Required objects: " + ", ".join(f"[`{one}`](#{one})" for one in required) + "."]
        for name, entry in self.content["properties"].items():
            if name != "$schema":
                if "description" not in entry:
                    self.missing.append(name)
                parts.append(self.section(name, entry, name + "."))
        for name, entry in self.content["$defs"].items():
            if entry.get("type") == "object":
                parts.append(self.section(name, entry, ""))
        return "\n\n".join(parts)


def main(arguments):
    check = arguments == ["--check"]
    if arguments and not check:
        sys.exit(__doc__)
    names = sources()
    entries = list(described(names))
    known = {name for found, *_ in entries for name in found}
    wrong = [f"{file} reads {name}, which no comment describes" for name, file in reads(names).items()
             if name not in known | FOREIGN]
    schema = Schema(SCHEMA)
    made = {"library": environment(entries, True), "others": environment(entries, False), "tests": of_tests(entries),
            "euler": schema.text()}
    wrong += [f"{SCHEMA}: {key} has no description" for key in schema.missing]
    before = PAGE.read_text()
    after = before
    for name, text in made.items():
        pattern = rf"(<!-- {name}: by scripts/settings\.py -->\n).*?(<!-- end -->)"
        if not re.search(pattern, after, re.S):
            wrong.append(f"docs/reference/settings.md has no place for '{name}'")
        after = re.sub(pattern, lambda match, text=text: f"{match[1]}\n{text}\n\n{match[2]}", after, flags=re.S)
    if check and after != before:
        wrong.append("docs/reference/settings.md is stale: run scripts/settings.py")
    elif after != before:
        PAGE.write_text(after)
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main(sys.argv[1:])
