"""Pages of the C++ reference from Doxygen's XML: one a header, in MyST Markdown."""

import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

SHOWN = ("public-type", "public-func", "public-static-func", "public-attrib", "public-static-attrib", "friend",
         "func", "enum", "typedef", "var", "define", "user-defined")


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


def tidy(text):
    """A type as people write it."""
    text = re.sub(r"\s+", " ", text).replace("< ", "<").replace(" >", ">").replace(" *", " *")
    return re.sub(r" ([&*]+)(\w)", r" \1\2", text).strip()


def template_line(element):
    parameters = element.find("templateparamlist")
    if parameters is None:
        return ""
    names = []
    for one in parameters:
        text = plain(one.find("type"))
        name = plain(one.find("declname"))
        default = one.find("defval")
        names.append(tidy(" ".join(part for part in (text, name) if part))
                     + (f" = {tidy(plain(default))}" if default is not None else ""))
    return f"template <{', '.join(names)}>\n"


def signature(member):
    kind, name = member.get("kind"), plain(member.find("name"))
    kind_of = tidy(plain(member.find("type")))
    arguments = tidy(plain(member.find("argsstring"))).replace("=", " = ").replace(" =  = ", " == ")
    for word in ("0", "default", "delete"):
        arguments = arguments.replace(f" =  {word}", f" = {word}")
    if kind == "enum":
        values = ", ".join(plain(value.find("name")) for value in member.iter("enumvalue"))
        return f"enum class {name} {{ {values} }}"
    if kind == "define":
        parameters = ", ".join(plain(one.find("defname")) for one in member.findall("param"))
        return f"#define {name}" + (f"({parameters})" if parameters else "")
    if kind == "typedef":
        return template_line(member) + f"using {name} = {kind_of}"
    static = "static " if member.get("static") == "yes" and "static" not in kind_of else ""
    if kind == "variable":
        initial = tidy(plain(member.find("initializer")))
        return template_line(member) + f"{static}{kind_of} {name}{arguments} {initial}".rstrip()
    return template_line(member) + f"{static}{kind_of} {name}{arguments}".strip()


def position(member):
    """Header and line of a declaration."""
    where = member.find("location")
    return where.get("file"), int(where.get("line"))


def is_special(member, owner):
    """Copying, moving, destroying, and constructors without arguments: what they do needs no words."""
    name, arguments = plain(member.find("name")), plain(member.find("argsstring"))
    return name.startswith("~") or name == "operator=" or (
        name == owner and re.match(rf"\((\)|(const )?{re.escape(owner)}\b[^,]*&)", arguments) is not None)


class Reference:
    """The XML of one run of Doxygen over the headers below `source`/src."""

    def __init__(self, folder, source):
        self.folder = pathlib.Path(folder)
        self.source = pathlib.Path(source) / "src"
        self.compounds = {}
        for path in self.folder.glob("*.xml"):
            if path.name not in ("index.xml", "Doxyfile.xml"):
                compound = ElementTree.parse(path).getroot().find("compounddef")
                if compound is not None:
                    self.compounds[compound.get("id")] = compound
        self.prose = Prose({})
        self.written = set()
        self.silent = []  # classes without a description
        classes = (one for one in self.compounds.values() if one.get("kind") in ("class", "struct"))
        self.nested = {inner.get("refid") for one in classes for inner in one.findall("innerclass")}
        self.headers = {plain_path(one): one for one in self.compounds.values()
                        if one.get("kind") == "file" and plain_path(one).endswith(".hpp")}
        self.texts = {}  # header -> its lines
        self.free = {}  # header -> members of namespaces that it declares
        for one in self.compounds.values():
            if one.get("kind") in ("namespace", "file"):
                for member in one.iter("memberdef"):
                    where = member.find("location").get("file")
                    self.free.setdefault(where, {})[member.get("id")] = member

    def link_to(self, headers):
        """Lets descriptions link to the classes of these headers: the ones that get pages."""
        self.prose.targets = {name for name, one in self.compounds.items()
                              if one.get("kind") in ("class", "struct", "union") and plain_path(one) in headers
                              and one.get("prot") == "public" and "::detail" not in plain(one.find("compoundname"))}

    def comment_above(self, member):
        """The line where the comment ends that describes this declaration and those before it in one block, without an
        empty line between; None if there is none."""
        header, line = position(member)
        if header not in self.texts:
            self.texts[header] = (self.source / header).read_text().splitlines()
        text = self.texts[header]
        indent = len(text[line - 1]) - len(text[line - 1].lstrip())
        for number in range(line - 1, 0, -1):
            before = text[number - 1]
            if before.strip().startswith("///"):
                return number
            if not before.strip() or len(before) - len(before.lstrip()) < indent or re.match(
                    r"\s*(public|protected|private):|#", before):
                return None
        return None

    def grouped(self, members):
        """Members, each as a list that begins with the one whose comment describes all of it."""
        groups, of_comment = [], {}
        for member in members:
            described = bool(self.prose.description(member))
            comment = (position(member)[0], self.comment_above(member)) if not described else None
            if comment in of_comment and comment[1] is not None:
                of_comment[comment].append(member)
                continue
            groups.append([member])
            if described:
                of_comment.setdefault((position(member)[0], self.comment_above(member)), groups[-1])
        return groups

    def undescribed(self, headers):
        """(header, line, function) of public functions of these headers that no comment describes, be it of a group."""
        for compound in self.compounds.values():
            if (compound.get("kind") not in ("class", "struct", "file", "namespace")
                    or compound.get("prot", "public") != "public"):
                continue
            owner = re.sub(r"<.*", "", plain(compound.find("compoundname"))).split("::")[-1].strip()
            for member in compound.iter("memberdef"):
                name = plain(member.find("qualifiedname"))
                needed = (member.get("kind") == "function" and member.get("prot") == "public"
                          and not re.search("detail::", name, re.IGNORECASE) and not is_special(member, owner)
                          and member.find("reimplements") is None)
                if (needed and position(member)[0] in headers and not self.prose.description(member)
                        and self.comment_above(member) is None):
                    yield *position(member), name + plain(member.find("argsstring"))

    def member(self, group):
        member = group[0]
        lines = ["::::{container} api-member", "```cpp", *(signature(one) for one in group), "```"]
        for block in self.prose.description(member):
            lines += ["", *block]
        for value in member.iter("enumvalue"):
            text = " ".join(self.prose.joined(value.find("briefdescription"), "")
                            + self.prose.joined(value.find("detaileddescription"), ""))
            lines += ["", f"- `{plain(value.find('name'))}`" + (f": {text}" if text else "")]
        return [*lines, "::::", ""]

    def compound(self, refid):
        one = self.compounds.get(refid)
        if refid not in self.prose.targets or refid in self.written:
            return []
        self.written.add(refid)
        name = tidy(plain(one.find("compoundname"))).removeprefix("DNDS::")
        described = self.prose.description(one)
        if not described and not re.search(r"<|Detail", name) and refid not in self.nested:
            self.silent.append(f"{plain_path(one)}: {name}")
        lines = [f"({anchor(refid)})=", f"## {one.get('kind')} {escape(name)}", ""]
        if one.find("templateparamlist") is not None:
            lines += ["```cpp", template_line(one) + f"{one.get('kind')} {name}", "```", ""]
        bases = [tidy(plain(base)) for base in one.findall("basecompoundref") if base.get("prot") == "public"]
        if bases:
            lines += ["Is a " + ", ".join(f"`{base}`" for base in bases) + ".", ""]
        for block in described:
            lines += [*block, ""]
        members = [member for section in one.findall("sectiondef") if section.get("kind") in SHOWN
                   for member in section.findall("memberdef")
                   if member.get("prot") == "public" and member.get("kind") != "friend"]
        for group in self.grouped(members):
            lines += self.member(group)
        for inner in one.findall("innerclass"):
            if inner.get("prot") == "public":
                lines += self.compound(inner.get("refid"))
        return lines

    def page(self, header):
        one = self.headers[header]
        lines = [f"# {header.rsplit('/', 1)[1]}", ""]
        for block in self.prose.description(one):
            lines += [*block, ""]
        lines += ["```cpp", f'#include "{header if header.startswith("DNDS/") else "DNDS/" + header}"', "```", ""]
        for inner in one.findall("innerclass"):
            if inner.get("refid") not in self.nested:
                lines += self.compound(inner.get("refid"))
        free = [member for member in self.free.get(header, {}).values()
                if "detail::" not in plain(member.find("qualifiedname"))]
        if free:
            lines += ["## Functions and names", ""]
            for group in self.grouped(free):
                lines += self.member(group)
        return "\n".join(lines)


def plain_path(compound):
    location = compound.find("location")
    return location.get("file") if location is not None else ""


def write(xml, source, headers, target):
    """A page for each of `headers` (as they are included) below `target`, and one a folder. Returns their number."""
    reference = Reference(xml, source)
    folders = {}
    for header in headers:
        known = header if header in reference.headers else header.removeprefix("DNDS/")
        if known in reference.headers:
            folders.setdefault(header.rsplit("/", 1)[0], []).append((header, known))
    reference.link_to({known for entries in folders.values() for _, known in entries})
    target.mkdir(parents=True, exist_ok=True)
    for folder, entries in folders.items():
        slug = folder.replace("/", "_")
        for header, known in entries:
            page = target / slug / (header.rsplit("/", 1)[1].removesuffix(".hpp") + ".md")
            page.parent.mkdir(exist_ok=True)
            page.write_text(reference.page(known))
        names = "\n".join(f"{slug}/{header.rsplit('/', 1)[1].removesuffix('.hpp')}" for header, _ in entries)
        (target / f"{slug}.md").write_text(f"# {folder}\n\n```{{toctree}}\n:maxdepth: 1\n\n{names}\n```\n")
    if reference.silent:
        sys.exit("classes without a description:\n  " + "\n  ".join(reference.silent))
    listed = "\n".join(folder.replace("/", "_") for folder in folders)
    (target / "index.md").write_text("# C++ reference\n\nOne page a header, folder by folder in the order of layers; "
                                     "the [map of the headers](../docs/reference/headers.md) says where to start.\n\n"
                                     f"```{{toctree}}\n:maxdepth: 2\n\n{listed}\n```\n")
    return sum(len(entries) for entries in folders.values())
