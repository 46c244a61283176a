"""python -m dnds.trace FILE.json: activities of ranks over time, as a picture and a table.

    DNDS_TRACE=trace.json mpiexec -n 4 solver
    python -m dnds.trace trace.json [-o PNG] [--first S] [--last S]

Each rank has a row for each of its threads, in which parts have the colour of their task, and waits are red and
hatched. The thin bar above shows when rows of that rank were on their way (pulls, pushes, copies). Where many spans
share a column of the picture, they are stacked: each has the share of the height that it has of the time.

The table says which share of their time ranks computed and waited, how much of the time that pulls took is hidden
by parts, and which ranks waited longest for which. --first and --last limit both to a part of the run, in seconds.

Needs NumPy and Matplotlib, but neither MPI nor the compiled module.
"""

import argparse
import json
import pathlib
import sys

import numpy as np

KINDS = ("part", "pull", "push", "wait", "copy", "other")
PART, PULL, PUSH, WAIT, COPY, OTHER = range(len(KINDS))
#: Columns of points in a row of the picture.
COLUMNS = 2400
BACKGROUND, RED, GREY = "#eef0f3", "#d62728", "#9aa1aa"
#: How many lines the list of waits has, and how many bars of the picture have the name of their task.
MOST_WAITS, MOST_LABELS = 10, 200

# ----------------------------------------------------------------------------------------------------------------------
# Reading


class Spans:
    """Spans as columns of equal length, times in seconds; `name` numbers `names`."""

    def __init__(self, columns, names):
        kinds = {"kind": np.int8, "rank": np.int64, "thread": np.int64, "name": np.int64, "begin": float, "end": float,
                 "bytes": float, "peer": np.int64}
        for column, (key, kind) in enumerate(kinds.items()):
            values = columns[:, column] if isinstance(columns, np.ndarray) else [row[column] for row in columns]
            setattr(self, key, np.array(values, dtype=kind))
        self.names = names

    def __len__(self):
        return len(self.kind)

    def where(self, chosen):
        """Spans chosen by a mask or a list of numbers."""
        found = object.__new__(Spans)
        found.__dict__ = {key: values if key == "names" else values[chosen] for key, values in self.__dict__.items()}
        return found

    def within(self, first, last):
        """Spans visible between two times, cut there."""
        found = self.where((self.begin <= last) & (self.end >= first))
        found.begin, found.end = (np.clip(times, first, last) for times in (found.begin, found.end))
        return found


def events_of(path):
    """The events of a file in Chrome's JSON array format, one after another: in lines of one event each, as DNDS
    writes them, or in any other way. What a rank wrote last may be torn, and the closing bracket missing."""
    with open(path, encoding="utf-8") as file:
        while lines := file.readlines(1 << 23):
            stripped = [line.strip().rstrip(",") for line in lines]
            stripped = [line for line in stripped if line not in ("", "[", "]")]
            try:
                events = json.loads(f"[{','.join(stripped)}]")
            except json.JSONDecodeError:
                break
            if not all(isinstance(event, dict) and "ph" in event for event in events):
                break
            yield from events
        else:
            return
    # Not one event a line, or torn.
    yield None
    text = pathlib.Path(path).read_text(encoding="utf-8")
    try:
        content = json.loads(text)
    except json.JSONDecodeError:
        content = json.loads(text[: max(text.rfind("},\n"), text.rfind("}\n")) + 1] + "]")
    yield from content.get("traceEvents", []) if isinstance(content, dict) else content


def read(path):
    """All spans of a trace. Raises ValueError for other files, and OSError for unreadable ones."""
    rows, open_spans, names = [], {}, {}
    kinds = {name: kind for kind, name in enumerate(KINDS)}
    try:
        for event in events_of(path):
            if event is None:  # a new trace begins
                rows, open_spans, names = [], {}, {}
                continue
            phase = event["ph"]
            if phase not in ("X", "b", "e"):
                continue
            category, rank, begin = event.get("cat", ""), event["pid"], 1e-6 * event["ts"]
            if phase == "e":
                row = open_spans.pop((rank, category, event["id"]), None)
                if row is not None:
                    row[5] = begin
                    rows.append(row)
                continue
            more = event.get("args", {})
            row = [kinds.get(category, OTHER), rank, event.get("tid", 0), names.setdefault(event["name"], len(names)),
                   begin, begin + 1e-6 * event.get("dur", 0.0), more.get("bytes", 0), more.get("peer", -1)]
            if phase == "b":
                open_spans[rank, category, event["id"]] = row
            else:
                rows.append(row)
        spans = Spans(rows, list(names))
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} is not a trace in Chrome's JSON format: run a program with DNDS_TRACE={path} "
                         f"({type(error).__name__}: {error})") from None
    if len(spans) == 0:
        raise ValueError(f"{path} has no spans: ranks write them when their memory for them is full and at the end of "
                         "MPI, so let the program end; only plans of tasks are recorded")
    return spans


# ----------------------------------------------------------------------------------------------------------------------
# Sets of times


def union(spans):
    """The times at which at least one span runs, as intervals that are apart: begins and ends, in order."""
    order = np.argsort(spans.begin, kind="stable")
    begin, end = spans.begin[order], np.maximum.accumulate(spans.end[order])
    if len(begin) == 0:
        return begin, end
    apart = begin[1:] > end[:-1]
    return begin[np.r_[True, apart]], end[np.r_[apart, True]]


def covered(intervals, times):
    """How much of the intervals lies before each of the times."""
    begin, end = intervals
    if len(begin) == 0:
        return np.zeros(np.shape(times))
    total = np.cumsum(end - begin)
    corners = np.column_stack([begin, end]).ravel()
    return np.interp(times, corners, np.column_stack([total - (end - begin), total]).ravel())


def overlap(first, second):
    """How long both of two unions run."""
    return float(np.sum(covered(second, first[1]) - covered(second, first[0])))


def length(intervals):
    return float(np.sum(intervals[1] - intervals[0]))


# ----------------------------------------------------------------------------------------------------------------------
# The table


def percent(part, whole):
    return f"{100 * part / whole:.1f}%" if whole > 0 else "-"


def duration(seconds):
    for unit, scale in (("s", 1), ("ms", 1e3)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.4g} {unit}"
    return f"{seconds * 1e6:.4g} us"


def size(count):
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.4g} {unit}"
    return f"{count:.0f} B"


def summary(spans, window):
    """For each rank: threads, shares of their time, and operations in flight."""
    ranks = {}
    for rank in np.unique(spans.rank):
        mine = spans.where(spans.rank == rank)
        parts, waits = mine.where(mine.kind == PART), mine.where(mine.kind == WAIT)
        moves = mine.where((mine.kind == PULL) | (mine.kind == PUSH))
        threads = np.unique(mine.thread)
        busy, waiting = (sum(length(union(some.where(some.thread == thread))) for thread in threads)
                         for some in (parts, waits))
        in_flight = union(moves)
        ranks[int(rank)] = {
            "threads": len(threads), "time": len(threads) * window, "busy": busy, "waiting": waiting,
            "pulls": len(moves), "in flight": length(in_flight), "hidden": overlap(in_flight, union(parts)),
            "bytes": float(moves.bytes.sum()),
        }
    return ranks


def longest_waits(spans):
    """Waits of a rank for one peer, or by one name where the peer is unknown, longest first: (rank, peer or -1, name of
    most of it, seconds, count, longest)."""
    waits = spans.where(spans.kind == WAIT)
    by_name = np.where(waits.peer >= 0, -1, waits.name)
    keys, group = np.unique(np.column_stack([waits.rank, waits.peer, by_name]), axis=0, return_inverse=True)
    group = group.ravel()
    took = waits.end - waits.begin
    seconds = np.bincount(group, took, len(keys))
    found = []
    for k in np.argsort(-seconds, kind="stable")[:MOST_WAITS]:
        mine = group == k
        name = spans.names[np.argmax(np.bincount(waits.name[mine], took[mine]))]
        found.append((int(keys[k, 0]), int(keys[k, 1]), name, seconds[k], int(mine.sum()), took[mine].max()))
    return found


def report(path, spans, window):
    """The table as text."""
    ranks = summary(spans, window)
    lines = [f"{path}: {len(spans):,} spans of {len(ranks)} rank{'s' if len(ranks) > 1 else ''} in {duration(window)}",
             f"{'rank':>6}{'threads':>9}{'busy':>8}{'waiting':>9}{'else':>8}{'pulls':>9}{'in flight':>12}"
             f"{'hidden':>8}{'moved':>11}"]

    def line(rank, row):
        lines.append(f"{rank:>6}{row['threads']:>9}{percent(row['busy'], row['time']):>8}"
                     f"{percent(row['waiting'], row['time']):>9}"
                     f"{percent(max(0, row['time'] - row['busy'] - row['waiting']), row['time']):>8}{row['pulls']:>9}"
                     f"{duration(row['in flight']):>12}{percent(row['hidden'], row['in flight']):>8}"
                     f"{size(row['bytes']):>11}")

    for rank, row in ranks.items():
        line(rank, row)
    if len(ranks) > 1:
        line("all", {key: sum(row[key] for row in ranks.values()) for key in next(iter(ranks.values()))})
    waits = longest_waits(spans)
    lines.append("who waited longest:" if waits else "nobody waited")
    for rank, peer, name, seconds, count, longest in waits:
        whom = f"for rank {peer}, most in '{name}'" if peer >= 0 else f"in '{name}'"
        lines.append(f"  rank {rank}: {duration(seconds)} {whom} ({count} wait{'s' if count > 1 else ''}, the longest "
                     f"{duration(longest)})")
    return "\n".join(lines)


# ----------------------------------------------------------------------------------------------------------------------
# The picture


def looks():
    """Colours and styles. Without the package, as C++ installations have this file, they lie beside it."""
    if __package__:
        from .plotting import drawing
    else:
        import drawing
    return drawing


def colours_of(spans):
    """A colour for the name of each task, the one with most time first; grey for those beyond the palette."""
    bright = [colour for colour in looks().PALETTE if colour != "#c9526a"]  # too near to the red of waits
    parts = spans.where(spans.kind == PART)
    time = np.bincount(parts.name, parts.end - parts.begin, len(spans.names))
    order = [int(name) for name in np.argsort(-time, kind="stable") if name in parts.name]
    return {name: bright[k] if k < len(bright) else GREY for k, name in enumerate(order)}


def strip(layers, edges, height):
    """One row of the picture as colours [height, columns, 3]: `layers` are pairs of spans and a colour, one upon the
    other; each takes its share of the column's time as its share of the height."""
    from matplotlib.colors import to_rgb

    image = np.empty((height, len(edges) - 1, 3))
    image[:] = to_rgb(BACKGROUND)
    level = (np.arange(height)[::-1, None] + 0.5) / height  # of points, above the row's lower end
    lower = np.zeros(len(edges) - 1)
    for some, colour in layers:
        upper = lower + np.diff(covered(union(some), edges)) / np.diff(edges)
        image[(lower <= level) & (level < upper)] = to_rgb(colour)
        lower = upper
    return image


def draw_rank(axes, mine, colours, edges, scale, top):
    """The rows of one rank below `top`: what moves, then threads. Returns where they end, and long bars of tasks."""
    moves = {PULL: "#22262b", PUSH: "#7d3c98", COPY: "#138d75"}

    def show(layers, upper, lower):
        image = strip(layers, edges, round(40 * (lower - upper)))
        axes.imshow(image, extent=(scale * edges[0], scale * edges[-1], lower, upper), aspect="auto",
                    interpolation="nearest")

    show([(mine.where(mine.kind == kind), colour) for kind, colour in moves.items()], top, top + 0.25)
    upper = top + 0.3
    long_bars = []
    point = (edges[-1] - edges[0]) / (len(edges) - 1)
    for thread in np.unique(mine.thread):
        row = mine.where(mine.thread == thread)
        parts, waits = row.where(row.kind == PART), row.where(row.kind == WAIT)
        layers = [(parts.where(parts.name == name), colours[name]) for name in np.unique(parts.name)]
        layers += [(row.where(row.kind == OTHER), GREY), (waits, RED)]
        show(layers, upper, upper + 0.8)
        begin, end = union(waits)
        wide = end - begin > 4 * point
        axes.broken_barh(np.column_stack([begin, end - begin])[wide] * scale, (upper, 0.8), facecolor="none",
                         edgecolor="white", hatch="/////", linewidth=0)
        fits = parts.end - parts.begin > point * (20 + 14 * np.array([len(name) for name in parts.names])[parts.name])
        long_bars += [(k.end - k.begin, 0.5 * (k.begin + k.end), upper + 0.4, parts.names[k.name])
                      for k in (Bar(parts, number) for number in np.flatnonzero(fits))]
        upper += 0.85
    return upper, long_bars


class Bar:
    """One of several spans."""

    def __init__(self, spans, number):
        self.begin, self.end, self.name = spans.begin[number], spans.end[number], spans.name[number]


def draw(spans, first, last, title=""):
    """The picture of what was between two times as a Matplotlib figure."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    ink, style = looks().INK, looks().STYLE
    colours = colours_of(spans)
    unit, scale = next(((unit, scale) for unit, scale in (("s", 1), ("ms", 1e3)) if scale * (last - first) >= 1),
                       ("microseconds", 1e6))
    edges = np.linspace(first, last, COLUMNS + 1)
    ranks = np.unique(spans.rank)
    rows = sum(0.6 + 0.85 * len(np.unique(spans.thread[spans.rank == rank])) for rank in ranks)
    with matplotlib.rc_context(style | {"hatch.linewidth": 0.6}):
        figure = Figure(figsize=(16, min(1.4 + 0.42 * max(rows, 4), 60)), layout="constrained")
        axes = figure.add_subplot()
        top, bars, ticks = 0.0, [], []
        for rank in ranks:
            bottom, more = draw_rank(axes, spans.where(spans.rank == rank), colours, edges, scale, top)
            ticks.append(0.5 * (top + bottom))
            bars += more
            top = bottom + 0.3
        for _, middle, height, name in sorted(bars, reverse=True)[:MOST_LABELS]:
            axes.text(scale * middle, height, name, ha="center", va="center", fontsize=8, color="white", clip_on=True)
        axes.set(xlim=(scale * first, scale * last), ylim=(top, -0.1), xlabel=unit, title=title)
        every = -(-len(ranks) // 100)
        axes.set_yticks(ticks[::every], [f"rank {rank}" for rank in ranks[::every]])
        axes.tick_params(axis="y", length=0)
        axes.grid(False)
        axes.spines["left"].set_visible(False)
        key = [Patch(color=colour, label=spans.names[name]) for name, colour in colours.items() if colour != GREY]
        if GREY in colours.values() or np.any(spans.kind == OTHER):
            key.append(Patch(color=GREY, label="other"))
        if np.any(spans.kind == WAIT):
            key.append(Patch(facecolor=RED, edgecolor="white", hatch="/////", label="waiting"))
        for kind, colour, label in ((PULL, ink, "pulls"), (PUSH, "#7d3c98", "pushes"), (COPY, "#138d75", "copies")):
            if np.any(spans.kind == kind):
                key.append(Patch(color=colour, label=f"{label} (thin bar)"))
        axes.legend(handles=key, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m dnds.trace", description="Draws what ranks did when, and says how "
                                     "much was hidden and who waited for whom.")
    parser.add_argument("file", help="what a program wrote that was run with DNDS_TRACE=FILE")
    parser.add_argument("-o", "--output", help="the picture (default: beside the file, with .png)")
    parser.add_argument("--first", type=float, metavar="S", help="from this second on")
    parser.add_argument("--last", type=float, metavar="S", help="up to this second")
    options = parser.parse_args(arguments)
    output = options.output or str(pathlib.Path(options.file).with_suffix(".png"))
    try:
        spans = read(options.file)
        begin, end = float(spans.begin.min()), float(spans.end.max())
        first = begin if options.first is None else options.first
        last = end if options.last is None else options.last
        spans = spans.within(first, last)
        if len(spans) == 0 or last <= first:
            raise ValueError(f"nothing happened from {first:g} s to {last:g} s: {options.file} is about {begin:g} s to "
                             f"{end:g} s")
        print(report(options.file, spans, last - first))
        draw(spans, first, last, pathlib.Path(options.file).name).savefig(output, dpi=150)
    except ImportError as error:
        print(f"dnds.trace: pictures need Matplotlib (pip install '.[plot]'): {error}", file=sys.stderr)
        return 1
    except FileNotFoundError:
        print(f"dnds.trace: there is no {options.file}, or no folder of {output}: run a program with "
              f"DNDS_TRACE={options.file}", file=sys.stderr)
        return 1
    except (OSError, ValueError) as error:
        print(f"dnds.trace: {error}", file=sys.stderr)
        return 1
    print(f"the picture is {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
