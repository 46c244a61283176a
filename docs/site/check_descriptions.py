"""Every public class and function of the installed headers has a description, but for classes within classes.

usage: check_descriptions.py SOURCE XML

A description is a comment of its own, or that of the block in which a function stands without an empty line. Copying,
moving, destroying and overriding need none.
"""

import pathlib
import sys
import tempfile

import api
import assemble


def main(source, xml):
    source = pathlib.Path(source)
    with tempfile.TemporaryDirectory() as folder:  # ends with a list of classes where some have none
        api.write(xml, source, assemble.public_headers(source), pathlib.Path(folder))
    reference = api.Reference(xml, source)
    headers = {name for header in assemble.public_headers(source) for name in (header, header.removeprefix("DNDS/"))}
    found = sorted(set(reference.undescribed(headers)))
    if found:
        sys.exit("public functions without a description:\n"
                 + "\n".join(f"  src/{header}:{line}: {function}" for header, line, function in found))


if __name__ == "__main__":
    main(*sys.argv[1:])
