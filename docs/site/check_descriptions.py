"""Public functions without a description are no more than there were: the number may only fall.

usage: check_descriptions.py SOURCE XML [--list]

--list  print them all

A description is a comment of its own, or that of the block in which a function stands without an empty line. Copying,
moving, destroying and overriding need none.
"""

import pathlib
import sys

import api
import assemble

MOST = 285  # lower it when there are fewer


def main(source, xml, *options):
    source = pathlib.Path(source)
    reference = api.Reference(xml, source)
    headers = {name for header in assemble.public_headers(source) for name in (header, header.removeprefix("DNDS/"))}
    found = sorted(set(reference.undescribed(headers)))
    if "--list" in options:
        print("\n".join(f"src/{header}:{line}: {function}" for header, line, function in found))
    if len(found) > MOST:
        sys.exit(f"{len(found)} public functions have no description, which is more than {MOST}: describe what you add "
                 f"(docs/site/check_descriptions.py SOURCE XML --list)")
    if len(found) < MOST:
        print(f"{len(found)} public functions have no description: MOST in docs/site/check_descriptions.py can be that")


if __name__ == "__main__":
    main(*sys.argv[1:])
