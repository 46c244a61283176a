"""Pages of the C++ reference from Doxygen's XML: a topic or a header each, and an index of members. In MyST."""

import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

from prose import Prose, anchor, escape, plain

SHOWN = ("public-type", "public-func", "public-static-func", "public-attrib", "public-static-attrib", "friend",
         "func", "enum", "typedef", "var", "define", "user-defined")
# Topics, the guide to each, and the folders whose headers it has; a folder's own folders with it.
TOPICS = (
    ("Arrays and ghosts", "docs/guides/concepts.md",
     ("DNDS/DNDS.hpp", "DNDS/Array", "DNDS/Storage", "DNDS/Index", "DNDS/Exchange", "DNDS/Transport")),
    ("Meshes", "docs/guides/meshes.md", ("DNDS/Geom",)),
    ("Task graphs", "docs/guides/tasks.md", ("DNDS/Task",)),
    ("Structured blocks", "docs/guides/blocks.md", ("DNDS/Blocks",)),
    ("Sparse fields", "docs/guides/sparse.md", ("DNDS/Sparse",)),
    ("Linear systems", "docs/guides/linear.md", ("DNDS/Linear", "DNDS/Petsc", "DNDS/Hypre")),
    ("One-sided access", "docs/guides/one_sided.md", ("DNDS/OneSided",)),
    ("Checkpoints and files", "docs/guides/checkpoints.md", ("DNDS/Serialize", "DNDS/GridFile")),
    ("Devices, streams, loops", "docs/guides/gpu.md", ("DNDS/Device",)),
    ("MPI, errors, settings", "docs/reference/errors.md", ("DNDS/Mpi", "DNDS/Base")),
    ("Others", "docs/reference/headers.md", ("DNDS",)),
)


def topic_of(header):
    return next(topic for topic in TOPICS if any(header == one or header.startswith(one + "/") for one in topic[2]))


def internal(name):
    """Whether a class, by its qualified name and Doxygen's, is part of the implementation of others."""
    return re.search(r"(^|::)[Dd]etail::|_COMPILATION|\w(Impl|States?|Model|Body|Guard|Argument)\b", name) is not None


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
        self.members = {}  # name of a member or free function -> {where it is: its anchor}
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
                              and one.get("prot") == "public"
                              and not internal(f"{plain(one.find('compoundname'))} {name}")}

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

    def indexed(self, group, owner):
        """Targets of the members of a group, which the search and the index of members lead to."""
        lines = []
        for name in dict.fromkeys(plain(one.find("name")) for one in group):
            if re.fullmatch(r"\w+", name) and name != owner.split("::")[-1]:
                target = anchor(next(one for one in group if plain(one.find("name")) == name).get("id"))
                if target not in self.written:  # specialisations have the same
                    self.written.add(target)
                    self.members.setdefault(name, {}).setdefault(owner, target)
                    lines += [f"({target})=", f"```{{index}} ! single: {name}", "```", ""]
        return lines

    def member(self, group, owner):
        member = group[0]
        lines = [*self.indexed(group, owner), "::::{container} api-member", "```cpp",
                 *(signature(one) for one in group), "```"]
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
        lines = [f"```{{index}} ! single: {re.sub('<.*', '', name).split('::')[-1]}", "```", "",
                 f"({anchor(refid)})=", f"## {one.get('kind')} {escape(name)}", ""]
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
            lines += self.member(group, re.sub(r"<.*", "", name))
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
                if "detail::" not in plain(member.find("qualifiedname")).lower()]
        if free:
            lines += ["## Functions and names", ""]
            for group in self.grouped(free):
                lines += self.member(group, header.rsplit("/", 1)[1])
        return "\n".join(lines)

    def summary(self, header):
        """The classes of a header, as (name, line of a table with a link and the first sentence about it)."""
        for inner in self.headers[header].findall("innerclass"):
            one = self.compounds.get(inner.get("refid"))
            if inner.get("refid") in self.prose.targets and inner.get("refid") not in self.nested:
                name = tidy(plain(one.find("compoundname"))).removeprefix("DNDS::")
                text = " ".join(next(iter(self.prose.description(one)), [""]))
                if "<" not in name:
                    yield name, (f"| [{escape(name)}](#{anchor(inner.get('refid'))}) | "
                                 + re.split(r"(?<=[.:;]) ", text)[0].rstrip(":;") + " |")

    def member_index(self):
        """All members by the alphabet, with the classes or headers that they are of."""
        lines = ["# Index of members", "", "Members of classes, and functions of headers.", ""]
        letter = ""
        for name, places in sorted(self.members.items(), key=lambda one: one[0].lower()):
            if name[0].upper() != letter:
                letter = name[0].upper()
                lines += ["", f"## {letter}", ""]
            lines.append(f"- `{name}`: "
                         + ", ".join(f"[{escape(owner)}](#{target})" for owner, target in sorted(places.items())))
        return "\n".join(lines) + "\n"


def plain_path(compound):
    location = compound.find("location")
    return location.get("file") if location is not None else ""


def write(xml, source, headers, target):
    """A page for each of `headers` (as they are included) below `target`, one a topic, and an index of members. Returns
    the number of headers."""
    reference = Reference(xml, source)
    topics = {}
    for header in headers:
        known = header if header in reference.headers else header.removeprefix("DNDS/")
        if known in reference.headers:
            topics.setdefault(topic_of(header), []).append((header, known))
    reference.link_to({known for entries in topics.values() for _, known in entries})
    guides = [path for pattern in ("README.md", "docs/*/*.md", "docs/tutorial/*", "cases/*/*.[cm]*")
              for path in pathlib.Path(source).glob(pattern)]
    named = set(re.findall(r"\w+", " ".join(path.read_text(errors="replace") for path in guides if path.is_file())))
    listed = []
    for topic in (one for one in TOPICS if one in topics):
        title, guide, _ = topic
        slug = re.sub(r"\W+", "_", title.lower())
        listed.append(slug)
        rows, names = [], []
        for header, known in topics[topic]:
            text = reference.page(known)
            if "\n## " not in text and header not in ("DNDS/DNDS.hpp", "DNDS/Geom/Geom.hpp"):
                continue  # of the implementation alone
            names.append(f"{header.removeprefix('DNDS/').removesuffix('.hpp').replace('/', '_')}")
            page = target / slug / f"{names[-1]}.md"
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text)
            rows += reference.summary(known)
        tables = []
        for heading, is_named in (("## Classes of the guides", True), ("## What these take and return", False)):
            lines = [line for name, line in rows if (name.split("::")[-1] in named) == is_named]
            tables += [heading, "", "| class | purpose |", "|---|---|", *lines, ""] if lines else []
        (target / f"{slug}.md").write_text("\n".join(
            [f"# {title}", "", f"The guide: [](../{guide}).", "", *tables, "## Headers", "", "```{toctree}",
             ":maxdepth: 1", "", *(f"{slug}/{name}" for name in names), "```", ""]))
    if reference.silent:
        sys.exit("classes without a description:\n  " + "\n  ".join(reference.silent))
    (target / "members.md").write_text(reference.member_index())
    (target / "index.md").write_text("\n".join(
        ["# C++ reference", "", "Classes by topic, a page for each header, and the [index of members](members.md); the",
         "[map of the headers](../docs/reference/headers.md) says which to include.", "",
         "```{toctree}", ":maxdepth: 1", "", *listed, "members", "```", ""]))
    return sum(len(entries) for entries in topics.values())
