#!/usr/bin/env python3
"""Draws the figures of the documentation as SVG files beside this script. Needs nothing but Python.

python3 docs/figures/draw.py
"""

from pathlib import Path
from xml.sax.saxutils import escape

SANS = "Helvetica, Arial, 'DejaVu Sans', sans-serif"
MONO = "Menlo, Consolas, 'DejaVu Sans Mono', monospace"
INK = "#24292f"
SOFT = "#6a737d"
# One colour for each rank or row: light fill, dark line.
COLOURS = [("#cfe3f7", "#2b6cb0"), ("#fde3c8", "#c05621"), ("#d3ecd2", "#2f7d32"), ("#e6dbf4", "#6b46c1")]
PADDING = ("#f1f1f1", "#b5b5b5")


class Figure:
    """Collects shapes and writes them with a white background."""

    def __init__(self, width, height, title):
        self.size = (width, height)
        self.title = title
        self.body = []

    def add(self, text):
        self.body.append(text)

    def rect(self, x, y, w, h, fill="white", line=INK, dash=None, radius=3, width=1.3):
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.add(
            f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="{radius}" fill="{fill}" stroke="{line}"'
            f' stroke-width="{width}"{dashes}/>'
        )

    def text(self, x, y, text, size=13, anchor="start", font=SANS, colour=INK, bold=False):
        weight = ' font-weight="bold"' if bold else ""
        self.add(
            f'<text x="{x}" y="{y}" font-family="{font}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{colour}"{weight}>'
            f"{escape(text)}</text>"
        )

    def lines(self, x, y, texts, step=17, **options):
        for k, text in enumerate(texts):
            self.text(x, y + k * step, text, **options)

    def arrow(self, path, colour=INK, dash=None, width=1.6, head="end"):
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        name = {"#24292f": "ink", "#6a737d": "soft"}.get(colour, "c" + colour[1:])
        self.heads = getattr(self, "heads", {})
        self.heads[name] = colour
        self.add(
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width}"{dashes} '
            f'marker-{head}="url(#{name})"/>'
        )

    def cell(self, x, y, label, colour, size=30, dash=None, height=None):
        fill, line = colour
        height = height or size
        self.rect(x, y, size, height, fill, line, dash)
        if label != "":
            self.text(x + size / 2, y + height / 2 + 4.5, str(label), anchor="middle", font=MONO)

    def write(self, name):
        markers = "".join(
            f'<marker id="{key}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7"'
            f' orient="auto-start-reverse"><path d="M0,0 L10,5 L0,10 z" fill="{colour}"/></marker>'
            for key, colour in sorted(getattr(self, "heads", {}).items())
        )
        width, height = self.size
        text = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
            f' role="img" aria-label="{escape(self.title)}">\n<title>{escape(self.title)}</title>\n'
            f'<defs>{markers}</defs>\n<rect width="{width}" height="{height}" fill="white"/>\n'
        )
        text += "\n".join(self.body) + "\n</svg>\n"
        (Path(__file__).parent / name).write_text(text)


def layouts():
    """Six ways for rows to lie in memory."""
    f = Figure(920, 520, "The six row layouts of arrays")
    step = 28
    sizes = [3, 1, 4, 2]

    def panel(column, row, name, declaration, note):
        x, y = 20 + column * 455, 16 + row * 168
        f.rect(x, y, 435, 156, "white", "#d0d7de", radius=6)
        f.text(x + 14, y + 24, name, size=15, bold=True)
        f.text(x + 421, y + 24, declaration, size=12, anchor="end", font=MONO, colour=SOFT)
        f.lines(x + 14, y + 128, note, size=12, colour=SOFT, step=15)
        return x + 14, y + 40

    def elements(x, y, widths, stored=None, gap=0):
        at = x
        for r, width in enumerate(widths):
            for k in range(stored or width):
                real = k < width
                f.cell(
                    at, y, f"{r}.{k}" if real else "", COLOURS[r] if real else PADDING, step, None if real else "3 3"
                )
                at += step
            at += gap
        return at

    def small(x, y, label, values):
        f.text(x, y + 15, label, size=12, font=MONO, colour=SOFT)
        at = x + 8 + 7.4 * len(label)
        for value in values:
            f.cell(at, y, value, ("white", SOFT), 26, height=22)
            at += 26

    x, y = panel(
        0,
        0,
        "StaticFixed",
        "Array<real, 3>",
        ["All rows have one width, known to the compiler.", "Row i starts at element 3 i."],
    )
    elements(x, y, [3, 3, 3, 3])
    x, y = panel(
        1, 0, "Fixed", "Array<real, DynamicSize>", ["All rows have one width, chosen at run time:", "resize(4, 3)."]
    )
    elements(x, y, [3, 3, 3, 3])
    small(x, y + 42, "width", [3])

    x, y = panel(
        0,
        1,
        "StaticMax",
        "Array<real, NonUniformSize, 4>",
        [
            "Each row has its own size up to a maximum known to the",
            "compiler. Rows may grow in place; padding is kept zero.",
        ],
    )
    elements(x, y, [3, 1, 4], 4)
    small(x, y + 42, "sizes", sizes[:3])
    x, y = panel(
        1,
        1,
        "Max",
        "Array<real, NonUniformSize, DynamicSize>",
        ["The same with the maximum chosen at run time:", "resize(3, 4, sizeOfRow)."],
    )
    elements(x, y, [3, 1, 4], 4)
    small(x, y + 42, "sizes", sizes[:3])
    small(x + 160, y + 42, "maximum", [4])

    x, y = panel(
        0,
        2,
        "CSR, compressed",
        "Array<real, NonUniformSize>",
        [
            "Each row has its own size; no padding. This is the state in",
            "which rows are viewed, exchanged and copied to a device.",
        ],
    )
    elements(x, y, sizes)
    small(x, y + 42, "offsets", [0, 3, 4, 8, 10])
    x, y = panel(
        1,
        2,
        "CSR, decompressed",
        "after decompress()",
        ["Each row has memory of its own and may grow:", "resizeRow, appendToRow. compress() joins them again."],
    )
    at = x
    for r, width in enumerate(sizes):
        for k in range(width):
            f.cell(at, y + (0 if r % 2 == 0 else 26), f"{r}.{k}", COLOURS[r], step, height=24)
            at += step
        at += 20
    f.write("layouts.svg")


def father_and_son():
    """Pull and push on a ring of 12 rows over three ranks."""
    f = Figure(950, 560, "Father and son: pull and push between three ranks")
    size = 34
    sons = [[4, 11], [3, 8], [0, 7]]  # of each rank, sorted by owner and row
    left = [80, 390, 700]

    f.text(
        28,
        34,
        "The rows of all ranks: rank r owns a contiguous range. Each row reads its two neighbours on a ring.",
        size=14,
    )
    for row in range(12):
        f.cell(80 + row * size, 50, row, COLOURS[row // 4], size)
    for rank in range(3):
        f.text(80 + (4 * rank + 2) * size, 102, f"rank {rank}", size=12, anchor="middle", colour=COLOURS[rank][1])

    def father(row):
        return left[row // 4] + row % 4 * size

    def son(rank, row):
        return left[rank] + 4 * size + 14 + sons[rank].index(row) * size

    def panel(y, pull):
        for rank in range(3):
            f.text(left[rank] - 8, y + 15, f"rank {rank}", size=12, anchor="end", bold=True, colour=COLOURS[rank][1])
            f.text(left[rank] - 8, y + 30, "father", size=12, anchor="end", colour=SOFT)
            f.text(left[rank] + 6 * size + 20, y + 22, "son", size=12, colour=SOFT)
            for row in range(4 * rank, 4 * rank + 4):
                f.cell(father(row), y, row, COLOURS[rank], size)
            for row in sons[rank]:
                f.cell(son(rank, row), y, row, COLOURS[row // 4], size, "4 3")
        # Rows that move to the right pass below, the others above; long ways pass outside of short ones.
        for rank in range(3):
            for row in sons[rank]:
                a, b = father(row) + size / 2, son(rank, row) + size / 2
                far = 38 if abs(row // 4 - rank) == 1 else 66
                edge, reach = (y + size, y + size + far) if a < b else (y, y - far)
                if row == 4 or row == 8:
                    reach = y - 34
                if not pull:
                    a, b = b, a
                gap = 2 if edge > y else -2
                f.arrow(f"M{a},{edge + gap} C{a},{reach} {b},{reach} {b},{edge + gap}", COLOURS[row // 4][1])

    f.text(28, 150, "pull: father → son", size=14, bold=True)
    f.text(190, 150, "each owner sends its rows to those who keep copies of them", size=14)
    panel(218, True)
    f.text(28, 366, "push: son → father", size=14, bold=True)
    f.text(190, 366, "copies go back and meet their owner's row: replace, sum, min or max", size=14)
    panel(434, False)
    f.write("father_and_son.svg")


def separation():
    """Pattern, transport, arrays and exchange."""
    f = Figure(900, 330, "What knows what in an exchange")

    def box(x, y, w, h, title, lines, colour):
        f.rect(x, y, w, h, colour[0], colour[1], radius=6, width=1.5)
        f.text(x + w / 2, y + 26, title, size=15, anchor="middle", bold=True)
        f.lines(x + w / 2, y + 48, lines, size=12.5, anchor="middle")

    box(
        30,
        24,
        250,
        110,
        "pattern",
        ["who sends which rows to whom:", "row numbers only;", "no type, no width, no memory"],
        COLOURS[0],
    )
    box(
        325,
        24,
        250,
        110,
        "arrays",
        ["typed memory: father and son;", "the only templates,", "reduced to bytes by RowLayout"],
        COLOURS[1],
    )
    box(
        620,
        24,
        250,
        110,
        "transport",
        ["how bytes move:", "packed, datatype, node-shared;", "knows no types and no fields"],
        COLOURS[2],
    )
    box(
        240,
        214,
        420,
        92,
        "exchange",
        ["binds a pattern to arrays, with a transport for each peer", "start()  →  wait()"],
        ("#ffffff", INK),
    )
    f.arrow("M155,134 C155,180 300,170 330,208", COLOURS[0][1])
    f.arrow("M450,134 L450,208", COLOURS[1][1])
    f.arrow("M745,134 C745,180 600,170 570,208", COLOURS[2][1])
    f.text(112, 184, "which rows", size=12.5, colour=COLOURS[0][1])
    f.text(460, 178, "where they are now", size=12.5, colour=COLOURS[1][1])
    f.text(712, 184, "messages, copies", size=12.5, colour=COLOURS[2][1])
    f.write("separation.svg")


def residency():
    """Which copies of an array are current."""
    f = Figure(900, 300, "Which side of an array is current")

    def state(x, y, host, device, caption):
        f.rect(x, y, 190, 92, "white", "#d0d7de", radius=8, width=1.5)
        for k, (name, current) in enumerate((("host", host), ("device", device))):
            colour = COLOURS[2] if current else PADDING
            f.rect(x + 12 + k * 86, y + 12, 80, 42, colour[0], colour[1], None if current else "4 3")
            f.text(x + 52 + k * 86, y + 30, name, size=12.5, anchor="middle", bold=current)
            f.text(x + 52 + k * 86, y + 46, "current" if current else "stale", size=11, anchor="middle", colour=SOFT)
        f.text(x + 95, y + 77, caption, size=12, anchor="middle", colour=SOFT)

    state(30, 104, True, False, "new, or written on the host")
    state(355, 104, True, True, "after a copy")
    state(680, 104, False, True, "written on the device")
    f.arrow("M220,136 L351,136")
    f.text(285, 127, "toDevice()", size=12, anchor="middle", font=MONO)
    f.arrow("M355,164 L224,164", SOFT)
    f.text(288, 183, "host view", size=12, anchor="middle", colour=SOFT)
    f.text(288, 197, "for writing", size=12, anchor="middle", colour=SOFT)
    f.arrow("M545,136 L676,136", SOFT)
    f.text(611, 113, "device view", size=12, anchor="middle", colour=SOFT)
    f.text(611, 127, "for writing", size=12, anchor="middle", colour=SOFT)
    f.arrow("M680,164 L549,164")
    f.text(614, 183, "toHost()", size=12, anchor="middle", font=MONO)
    f.text(
        30, 40, "Copies happen in toDevice() and toHost() only. Taking a view checks in O(1) and never copies:", size=14
    )
    f.text(30, 60, "a view of a stale side throws StaleError, a view for writing makes the other side stale.", size=14)
    f.text(
        30,
        250,
        "Only the current side can be viewed: StaleError names the array and tells which call is missing.",
        size=13,
        colour=SOFT,
    )
    f.text(
        30,
        270,
        "Without a device back end there is only the host side, and toDevice() throws NotBuiltError.",
        size=13,
        colour=SOFT,
    )
    f.write("residency.svg")


def overlap():
    """The life of an exchange on two ranks."""
    f = Figure(900, 310, "Computing during a pull")
    lanes = {0: 88, 1: 208}

    def span(rank, x0, x1, label, colour, dash=None):
        f.rect(x0, lanes[rank], x1 - x0, 44, colour[0], colour[1], dash)
        f.text((x0 + x1) / 2, lanes[rank] + 27, label, size=12.5, anchor="middle")

    quiet = ("#ffffff", SOFT)
    for rank, y in lanes.items():
        f.text(24, y + 27, f"rank {rank}", size=14, bold=True, colour=COLOURS[rank][1])
    # rank 0 begins earlier and has to wait, rank 1 finds its rows there
    span(0, 90, 150, "start", quiet)
    span(0, 154, 430, "inner rows: read owned rows only", COLOURS[0])
    span(0, 434, 520, "wait", quiet)
    span(0, 524, 700, "boundary rows", COLOURS[0])
    span(1, 250, 310, "start", quiet)
    span(1, 314, 560, "inner rows", COLOURS[1])
    span(1, 564, 606, "wait", quiet)
    span(1, 610, 790, "boundary rows", COLOURS[1])
    f.arrow("M140,134 C150,185 400,165 480,204", COLOURS[0][1], "5 4")
    f.arrow("M300,206 C315,165 440,185 507,136", COLOURS[1][1], "5 4")
    f.text(
        24,
        36,
        "Any rank may be early. start() sends and returns; wait() returns when this rank's ghosts are there.",
        size=14,
    )
    f.arrow("M90,280 L860,280", SOFT)
    f.text(860, 298, "time", size=12, anchor="end", colour=SOFT)
    f.text(24, 56, "In between, the father may be read but not written, and the son not be used.", size=14)
    f.write("overlap.svg")


def architecture():
    """The way of a pull and the way of a mesh file, file by file."""
    f = Figure(980, 610, "From startPersistentPull to the bytes, and from a mesh file to a field")

    def box(x, y, width, folder, name, lines, colour):
        f.rect(x, y, width, 34 + 17 * len(lines), colour[0], colour[1], radius=6, width=1.4)
        f.text(x + 12, y + 21, name, size=13, font=MONO, bold=True)
        f.text(x + width - 12, y + 21, folder, size=12, anchor="end", colour=SOFT)
        f.lines(x + 12, y + 40, lines, size=12.5)

    def column(x, width, title, steps, colour):
        """Each step is one box, or several of which one is taken, side by side."""
        f.text(x + width / 2, 34, title, size=15, anchor="middle", bold=True)
        y = 52
        for k, boxes in enumerate(steps):
            height = 34 + 17 * max(len(lines) for _, _, lines in boxes)
            each = (width - 14 * (len(boxes) - 1)) / len(boxes)
            for n, (folder, name, lines) in enumerate(boxes):
                left = x + n * (each + 14)
                if k > 0:
                    f.arrow(f"M{left + each / 2},{y - 22} L{left + each / 2},{y - 2}")
                box(left, y, each, folder, name, lines, colour)
            y += height + 22

    column(
        24,
        450,
        "a pull",
        [
            [("Array", "ArrayTransformer", ["startPersistentPull: describes father and son as bytes"])],
            [("Exchange", "PersistentExchanges", ["owns this array's pull and push"])],
            [
                (
                    "Exchange",
                    "Exchange",
                    [
                        "asks each array for its RowLayout: base, widths, space;",
                        "moved memory is bound anew, changed rows are an error",
                    ],
                )
            ],
            [("Exchange", "MessagePlan", ["pattern and layouts: the bytes for each peer, made once"])],
            [("Transport", "chooseTransport", ["which transport reaches which peer, and why"])],
            [
                (
                    "Transport",
                    "NodeShared",
                    ["on this node: writes rows", "into the reader's son,", "in turn by NodeEdge"],
                ),
                ("Transport", "Message", ["elsewhere: packs,", "starts MPI's requests"]),
            ],
            [("Transport", "ProgressEngine", ["waitPersistentPull: a rank that waits moves all it has started"])],
        ],
        COLOURS[0],
    )
    column(
        506,
        450,
        "a mesh",
        [
            [("Read", "ReadMesh", ["readMesh: recognises the format, calls its reader"])],
            [
                ("Cgns", "CgnsReader", ["TreeSource: HDF5, ADF", "Model: zones, sections"]),
                ("Gmsh", "GmshReader", ["File: lists that all", "ranks read together"]),
            ],
            [("Source", "SourceMesh", ["each rank's block of cells, faces, nodes; no format"])],
            [
                (
                    "Build",
                    "BuildMesh",
                    [
                        "Source: checks it, turns elements that are inside out",
                        "Partition: which rank gets which cell",
                        "Build: faces, migration, ghosts, numbers",
                    ],
                )
            ],
            [("Mesh", "UnstructuredMesh", ["cells, nodes, faces with ghosts; one pattern for each"])],
            [("Array", "ArrayPair", ["attachField: a father, a son, the mesh's pattern"])],
        ],
        COLOURS[2],
    )
    f.write("architecture.svg")


if __name__ == "__main__":
    architecture()
    layouts()
    father_and_son()
    separation()
    residency()
    overlap()
