"""Descriptions of Doxygen's XML as Markdown."""

import re


def anchor(refid):
    """The target of a class, from Doxygen's name of it."""
    return "api-" + re.sub(r"[^a-z0-9]+", "-", refid.lower()).strip("-")


def plain(element):
    """The text of an element without marks, spaces evened out."""
    return re.sub(r"\s+", " ", "".join(element.itertext())).strip() if element is not None else ""


def escape(text):
    """Text that Markdown leaves as it is."""
    return re.sub(r"([\\`*_{}\[\]<>#|~$])", r"\\\1", text)


class Prose:
    """Descriptions of Doxygen as Markdown; `targets` are the refids that have pages."""

    def __init__(self, targets):
        self.targets = targets

    def inline(self, element):
        text = escape(element.text or "")
        for child in element:
            text += self.span(child) + escape(child.tail or "")
        return re.sub(r"\s+", " ", text)

    def span(self, child):
        if child.tag == "computeroutput":
            return self.code(child)
        if child.tag in ("bold", "emphasis"):
            mark = "**" if child.tag == "bold" else "*"
            return mark + self.inline(child).strip() + mark
        if child.tag == "ref":
            return self.link(child, escape(plain(child)))
        if child.tag == "ulink":
            return f"[{self.inline(child)}]({child.get('url')})"
        if child.tag in ("ndash", "mdash"):
            return "-"
        return self.inline(child)

    def code(self, element):
        text = f"`{plain(element)}`"
        inner = list(element)
        return self.link(inner[0], text) if len(inner) == 1 and inner[0].tag == "ref" else text

    def link(self, reference, text):
        refid = reference.get("refid")
        if reference.get("kindref") == "member":
            refid = refid.rsplit("_1", 1)[0]
        return f"[{text}](#{anchor(refid)})" if refid in self.targets else text

    def blocks(self, element):
        """Paragraphs, lists and code of a description, each a list of lines."""
        if element is None:
            return
        for paragraph in element:
            if paragraph.tag == "para":
                yield from self.paragraph(paragraph)
            else:
                yield from self.blocks(paragraph)

    def description(self, element):
        """The blocks of brief and detailed description. Doxygen cuts the first paragraph in two: it is one here."""
        brief = list(self.blocks(element.find("briefdescription")))
        rest = list(self.blocks(element.find("detaileddescription")))
        if len(brief) == 1 and rest and len(rest[0]) == 1 and not rest[0][0].startswith("-"):
            brief[0] = [brief[0][0] + " " + rest.pop(0)[0]]
        return brief + rest

    def paragraph(self, paragraph):
        text = escape(paragraph.text or "")
        for child in paragraph:
            block = self.block(child)
            if block is None:
                text += self.span(child)
            else:
                if text.strip():
                    yield [re.sub(r"\s+", " ", text).strip()]
                yield block
                text = ""
            text += escape(child.tail or "")
        if text.strip():
            yield [re.sub(r"\s+", " ", text).strip()]

    def block(self, child):
        if child.tag in ("itemizedlist", "orderedlist"):
            return self.items(child)
        if child.tag in ("programlisting", "verbatim", "preformatted"):
            for space in child.iter("sp"):
                space.text = " "
            lines = ["".join(line.itertext()) for line in child.iter("codeline")] or (child.text or "").splitlines()
            return ["````cpp", *lines, "````"]
        if child.tag == "simplesect":
            return self.joined(child, "Returns: " if child.get("kind") == "return" else "")
        if child.tag == "parameterlist":
            return [f"- `{plain(item.find('parameternamelist'))}`: "
                    + " ".join(self.joined(item.find("parameterdescription"), ""))
                    for item in child.iter("parameteritem")]
        return None

    def items(self, element):
        lines = []
        for item in element:
            inner = self.joined(item, "")
            lines += ["- " + inner[0] if inner else "-"] + ["  " + line for line in inner[1:]]
        return lines

    def joined(self, element, start):
        lines = []
        for block in self.blocks(element):
            lines += ([""] if lines else []) + block
        return [start + lines[0], *lines[1:]] if lines else []
