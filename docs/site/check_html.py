"""Every link and picture of built pages leads to a file, and every #part to an element. usage: check_html.py FOLDER"""

import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.names = [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.names |= {given[key] for key in ("id", "name") if given.get(key)}
        self.links += [given[key] for key in ("href", "src") if given.get(key)]


def main(folder):
    root = pathlib.Path(folder).resolve()
    pages = {path: Page(path) for path in root.rglob("*.html")}
    dead, links = [], 0
    for path, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            links += 1
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                dead.append(f"{path.relative_to(root)}: {link}")
            elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].names:
                dead.append(f"{path.relative_to(root)}: {link} (no such part)")
    print("\n".join(sorted(set(dead))), f"{len(pages)} pages, {links} links, {len(set(dead))} dead", sep="\n")
    return bool(dead)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
