"""Lays the sources of the site in a folder: the guide as it stands in the repository, and pages made of the code.

usage: assemble.py SOURCE XML TARGET [STUB]
"""

import pathlib
import re
import shutil
import sys

import api
import search
import stubs

GUIDE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md", "docs/*/*.md",
         "cases/README.md", "cases/*/README.md", "bench/*/README.md", "packaging/README.md")
LINK = re.compile(r"\]\(([A-Za-z0-9_./-]+)(#[^)]*)?\)")


def public_headers(source):
    """The headers that the library installs, as programs include them, in the order of the lists."""
    for lists in (source / "src/CMakeLists.txt", *sorted((source / "src/DNDS").glob("*/CMakeLists.txt"))):
        prefix = "" if lists.parent.name == "src" else f"DNDS/{lists.parent.name}/"
        for block in re.findall(r"^set\(headers\s+(.*?)\)", lists.read_text(), re.S | re.M):
            for name in re.sub(r"#.*", "", block).split():
                yield prefix + name


def copy(source, target, name):
    to = target / name
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / name, to)


def guide(source, target):
    """Copies the guide and all files that it links to; returns the names of its pages."""
    pages = sorted({str(path.relative_to(source)) for pattern in GUIDE for path in source.glob(pattern)
                    if path.parent.name != "site"})
    for page in pages:
        copy(source, target, page)
        folder = pathlib.PurePosixPath(page).parent
        for link, _ in LINK.findall((source / page).read_text()):
            path = (source / folder / link).resolve()
            if path.is_file() and source in path.parents and path.suffix != ".md":
                copy(source, target, str(path.relative_to(source)))
        without_folders(target / page, source / folder)
    return pages


def without_folders(page, folder):
    """Links to folders, which a site does not have, become their names."""
    text = re.sub(r"\[([^\]\n]*)\]\(([A-Za-z0-9_./-]+)\)",
                  lambda match: match[1] if (folder / match[2]).is_dir() else match[0], page.read_text())
    page.write_text(text)


def others(pages, named):
    """Pages that the site's own index does not name, so that each is in the navigation."""
    return [page.removesuffix(".md") for page in pages if page.removesuffix(".md") not in named]


def main(source, xml, target, stub=None):
    source, target = pathlib.Path(source).resolve(), pathlib.Path(target)
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    pages = guide(source, target)
    count = api.write(xml, source, list(public_headers(source)), target / "api")
    python = [("dnds", pathlib.Path(stub))] if stub else []
    python += [(f"dnds.{name}", source / f"python/dnds/{name}.py") for name in ("blocks", "mesh")
               if (source / f"python/dnds/{name}.py").exists()]
    (target / "python_reference.md").write_text(stubs.page(python))

    search.write(source, [page for page in pages if re.match("docs/|README", page)], target / "scorer.js")
    index = (pathlib.Path(__file__).parent / "index.md").read_text()
    lines = [line for line in index.splitlines()
             if not re.fullmatch(r"(docs|cases|bench|packaging)/[\w/-]+|[A-Z]+", line) or line + ".md" in pages]
    rest = "\n".join(others(pages, {re.sub(r".*<(.*)>", r"\1", line.strip()) for line in index.splitlines()}))
    (target / "index.md").write_text("\n".join(lines).replace("@others@", rest) + "\n")
    print(f"{len(pages)} pages of the guide, {count} headers, stubs {'of ' + str(stub) if stub else 'not built'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
