#!/usr/bin/env python3
"""Checks that files of src/ include only what their layer may, that no folders include each other in a circle, and
that just those headers are installed that a tutorial, a case, a document or the Python package includes, and what these
include.

    scripts/check_layers.py [--graph] [FILE]

FILE (default scripts/layers.txt) lists each folder and the folders it may include. --graph also prints the includes
between folders, with their number. Exit code 1 where a file breaks a layer, a folder is not listed, or the list itself
has a cycle or names a folder that is not used.
"""

import argparse
import collections
import graphlib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]((?:DNDS|CUDA)/[^">]+)[">]', re.MULTILINE)
UPWARD = re.compile(r'^\s*#\s*include\s+"(\.\./[^"]+)"', re.MULTILINE)
FOR_DEVELOPERS = {"architecture.md", "decisions.md", "performance.md"}  # they name what is inside the library
SUFFIXES = {".h", ".hpp", ".inl", ".cpp", ".cu", ".cuh"}


def read_layers(path):
    """{folder: folders that it may include}; throws ValueError for a malformed line."""
    layers = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        folder, colon, allowed = line.partition(":")
        if not colon or folder in layers:
            raise ValueError(f"{path}:{number}: expected 'folder: folders that it may include', each folder once")
        layers[folder] = set(allowed.split())
    for folder, allowed in layers.items():
        for other in allowed - layers.keys():
            raise ValueError(f"{path}: {folder} may include {other}, which is not listed")
    return layers


def folder_of_include(name):
    """The folder under src/ of an included file: Geom is included as DNDS/Geom."""
    return str(pathlib.PurePosixPath(name).parent).removeprefix("DNDS/") if name.startswith("DNDS/Geom/") else str(
        pathlib.PurePosixPath(name).parent
    )


def includes(source):
    """(file, folder, included file, its folder) of every include between folders of `source`."""
    for file in sorted(source.rglob("*")):
        if file.suffix not in SUFFIXES or not file.is_file():
            continue
        folder = str(file.parent.relative_to(source))
        for name in INCLUDE.findall(file.read_text()):
            if folder_of_include(name) != folder:
                yield file, folder, name, folder_of_include(name)


def installed_headers(source):
    """Names, as they are included, of the headers that each CMakeLists.txt under `source` installs."""
    names = set()
    for lists in source.rglob("CMakeLists.txt"):
        folder = lists.parent.relative_to(source)
        prefix = "" if folder == pathlib.Path(".") else f"DNDS/{folder.as_posix().removeprefix('DNDS/')}/"
        for block in re.findall(r"^set\(headers\s(.*?)\)", lists.read_text(), re.MULTILINE | re.DOTALL):
            names.update(prefix + name for name in re.findall(r"^\s*([\w/]+\.(?:hpp|cuh))", block, re.MULTILINE))
    return names


def programs_of(root):
    """Files like those of users: cases and tutorials without their tests, the Python package, templates."""
    for folder in ("docs/tutorial", "cases", "python/src", "scripts/new-solver"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in SUFFIXES and not file.stem.endswith("Test"):
                yield file


def named_headers(root):
    """Headers that documents for users include or name with their path."""
    names = set()
    for file in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
        if file.is_file() and file.name not in FOR_DEVELOPERS:
            names.update(re.findall(r"\bDNDS/(?:\w+/)+\w+\.hpp", file.read_text()))
    return names


def check_installed(source):
    """What is wrong with the lists of installed headers."""
    installed = installed_headers(source)
    root = source.parent
    needed = {}  # header: a file that includes it
    todo = [(name, str(file)) for file in programs_of(root) for name in INCLUDE.findall(file.read_text())]
    todo += [(name, "a document") for name in sorted(named_headers(root)) if (source / name).is_file()]
    while todo:
        name, by = todo.pop()
        if name in needed or not name.startswith("DNDS/"):
            continue
        needed[name] = by
        if name not in installed:
            yield f"{by} includes {name}, which is not installed (headers in CMakeLists.txt)"
        elif (source / name).is_file():
            todo += [(other, name) for other in INCLUDE.findall((source / name).read_text())]
    for name in sorted(installed - needed.keys()):
        yield f"{name} is installed, but no tutorial, case, document or Python binding includes it: make it private"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("layers", nargs="?", type=pathlib.Path, default=ROOT / "scripts/layers.txt")
    parser.add_argument("--graph", action="store_true", help="print the includes between folders")
    parser.add_argument("--source", type=pathlib.Path, default=ROOT / "src", help="the folder that is checked")
    arguments = parser.parse_args()

    errors = []
    try:
        layers = read_layers(arguments.layers)
        tuple(graphlib.TopologicalSorter(layers).static_order())
    except ValueError as error:
        sys.exit(f"check_layers.py: {error}")
    except graphlib.CycleError as error:
        sys.exit(f"check_layers.py: {arguments.layers} has a cycle: {' -> '.join(error.args[1])}")

    for file in sorted(arguments.source.rglob("*")):
        if file.suffix in SUFFIXES and file.is_file():
            errors += [f"{file}: include {name} by its path from src/" for name in UPWARD.findall(file.read_text())]
    graph = collections.Counter()
    for file, folder, name, other in includes(arguments.source):
        graph[folder, other] += 1
        if folder not in layers:
            errors.append(f"{file}: the folder {folder} is not in {arguments.layers}")
        elif other not in layers[folder]:
            errors.append(f"{file}: {folder} may not include {name}: allowed are {' '.join(sorted(layers[folder]))}")
    if arguments.graph:
        for folder in layers:
            others = [f"{other} ({count})" for (first, other), count in sorted(graph.items()) if first == folder]
            print(f"{folder} -> {', '.join(others) or 'nothing'}")
    for folder in layers:
        for other in sorted(layers[folder] - {second for first, second in graph if first == folder}):
            errors.append(f"{arguments.layers}: {folder} includes nothing of {other}: take it off the list")
    errors += check_installed(arguments.source)
    for error in errors:
        print(error)
    if errors:
        sys.exit(1)


if __name__ == "__main__":
    main()
