#!/usr/bin/env python3
"""Checks that files of src/ include only what their layer may, that no folders include each other in a circle, and that
installed headers and the Python package include installed ones only.

    scripts/check_layers.py [--graph] [FILE]

FILE (default scripts/layers.txt) lists each folder and those that it may include. --graph also prints the includes
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
SUFFIXES = {".h", ".hpp", ".inl", ".cpp", ".cu", ".cuh"}


def read_layers(path):
    """{folder: folders that it may include}; throws ValueError for a line that is none."""
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


def missing_headers(source, clients):
    """(installed header or file of `clients`, header that it includes and that is not installed)."""
    installed = installed_headers(source)
    files = [(name, source / name) for name in sorted(installed)]
    files += [(str(file), file) for folder in clients for file in sorted(folder.rglob("*")) if file.suffix in SUFFIXES]
    for name, file in files:
        for included in INCLUDE.findall(file.read_text()) if file.is_file() else ():
            if included not in installed:
                yield name, included


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
    # The Python package is built against an installed library, too.
    for name, included in missing_headers(arguments.source, [arguments.source.parent / "python/src"]):
        errors.append(f"{name} includes {included}, which is not installed (headers in CMakeLists.txt)")
    for error in errors:
        print(error)
    if errors:
        sys.exit(1)


if __name__ == "__main__":
    main()
