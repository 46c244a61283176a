#!/usr/bin/env python3
"""What set-up, steps and checkpoints would take on up to a million ranks, from what bench_scale counted.

    scripts/bench.sh scale --ranks 64 --json counts.json --parts 16,64
    scripts/scale_model.py counts.json --machine supermuc-ng --plot scale.png
    scripts/scale_model.py counts.json --beside measured.json

The counts of a phase become seconds as in the LogGP model: messages cost an overhead each and a latency in all, bytes
the bandwidth that a rank has of its node's, a collective two latencies for each doubling of the ranks, and what grows
with the ranks (bytes of collectives, memory) is a line through the counts. A rank's work is given in seconds a cell.
"""

import argparse
import json
import math
import sys

# Rounded from what centres and vendors publish; `--machine FILE` reads another in the same form.
# latency, overhead: seconds; bandwidth: bytes a second of a node; file_bandwidth: of all nodes together;
# file_writer: of one rank; file_open: seconds, of which the file system serves `file_opens` at a time.
MACHINES = {
    "supermuc-ng": {"ranks_per_node": 48, "latency": 1.5e-6, "overhead": 4e-7, "bandwidth": 12.5e9,
                    "file_bandwidth": 500e9, "file_writer": 1e9, "file_open": 1e-3, "file_opens": 64},
    "lumi-c": {"ranks_per_node": 128, "latency": 2e-6, "overhead": 4e-7, "bandwidth": 25e9,
               "file_bandwidth": 240e9, "file_writer": 1e9, "file_open": 1e-3, "file_opens": 64},
    "frontier": {"ranks_per_node": 8, "latency": 2.5e-6, "overhead": 5e-7, "bandwidth": 100e9,
                 "file_bandwidth": 4.6e12, "file_writer": 2e9, "file_open": 1e-3, "file_opens": 256},
    "fugaku": {"ranks_per_node": 4, "latency": 1e-6, "overhead": 5e-7, "bandwidth": 40.8e9,
               "file_bandwidth": 1.5e12, "file_writer": 1e9, "file_open": 1e-3, "file_opens": 256},
    "ethernet": {"ranks_per_node": 64, "latency": 2e-5, "overhead": 2e-6, "bandwidth": 3e9,
                 "file_bandwidth": 2e9, "file_writer": 1e9, "file_open": 5e-3, "file_opens": 8},
}
SECONDS_A_RANK_OF_A_COMMUNICATOR = 2e-8  # to sort what ranks tell when one is made
COPY = 5e9  # bytes a second that a rank copies or scans
MOST_WRITERS, RANKS_A_WRITER = 256, 8  # CheckpointOptions::writers
# Bytes of memory that stay for each rank of the communicator: the limits of bench_scale --check. Between few ranks a
# line through the counts would show neighbours instead, which are more where more ranks have some on all sides.
KEPT = {"numbering": 8, "arrays": 8, "mesh": 24}
# Cuts of the curve (findCuts): 15 numbers a cut and reduction up to so many cuts, 63 reductions of one number beyond.
CUTS_BY_FEW_REDUCTIONS, BYTES_OF_CUT = 273, 2 * 8 * 63
LIMIT = 0.05


def fit(records, key):
    """(constant, each rank) of a quantity over the numbers of ranks that were counted; never falls."""
    points = sorted((r["ranks"], r[key]) for r in records)
    if len(points) == 1:
        return points[0][1], 0.0
    (p0, v0), (p1, v1) = points[0], points[-1]
    slope = max(0.0, (v1 - v0) / (p1 - p0))
    return max(v for _, v in points) - slope * p1, slope


def message_time(messages, latencies, size, machine):
    """Seconds of an overhead for each message, of latencies one after another, and of `size` bytes (LogGP)."""
    return messages * machine["overhead"] + latencies * machine["latency"] + size / machine["bandwidth"]


class Phase:
    """What one phase asks for, on any number of ranks."""

    def __init__(self, name, records):
        # Messages and their bytes follow a rank's neighbours, whose number does not rise for ever: the most counted.
        self.messages = max(r["messages"] for r in records)
        self.bytes = max(r["message_bytes"] for r in records)
        self.collectives = max(r["collectives"] for r in records)
        self.communicators = max(r["communicators"] for r in records)
        self.constant, self.each = fit(records, "collective_bytes")
        self.cuts = name == "mesh"
        self.kept = KEPT.get(name, 0)

    def collective_bytes(self, ranks):
        if self.cuts:
            return self.constant + max(self.each * min(ranks, CUTS_BY_FEW_REDUCTIONS), BYTES_OF_CUT * ranks)
        return self.constant + self.each * ranks

    def seconds(self, ranks, machine):
        each = machine["bandwidth"] / min(machine["ranks_per_node"], ranks)
        of_rank = machine | {"bandwidth": each}
        steps = 2 * math.ceil(math.log2(max(2, ranks)))
        return {
            "messages": message_time(self.messages, 1 if self.messages else 0, self.bytes, of_rank),
            "collectives": (self.collectives + self.communicators) * steps * machine["latency"],
            "O(ranks)": self.collective_bytes(ranks) / each + self.kept * ranks / COPY
            + self.communicators * ranks * SECONDS_A_RANK_OF_A_COMMUNICATOR,
        }


def halo_bytes(cells, row_bytes):
    """Ghost rows of a cube of cells with one layer around it."""
    side = cells ** (1 / 3)
    return ((side + 2) ** 3 - side**3) * row_bytes


class Model:
    """Predicts seconds of each part of a run of `ranks` ranks with the same number of cells each."""

    def __init__(self, counts, options):
        names = {r["phase"] for r in counts}
        self.phases = {name: Phase(name, [r for r in counts if r["phase"] == name]) for name in names}
        self.options = options

    def pull(self, ranks, machine):
        """Copies within a node, then the network traffic through the surface of its cells."""
        phase = self.phases["pull"]
        on_node = min(ranks, machine["ranks_per_node"])
        crossing = halo_bytes(self.options.cells * on_node, self.options.row_bytes) if ranks > on_node else 0
        copied = halo_bytes(self.options.cells, self.options.row_bytes)
        return message_time(phase.messages, 1, crossing, machine) + copied / COPY

    def setup(self, ranks, machine):
        """Seconds of each part of a start: numberings and exchanges of one field, and the mesh by the curve."""
        parts = {"context and exchanges": 0.0, "mesh": self.options.cells * self.options.mesh_time, "O(ranks)": 0.0}
        for name, phase in self.phases.items():
            part = {"mesh": "mesh"}.get(name, "context and exchanges" if name in SETUP else None)
            if part is None:
                continue
            seconds = phase.seconds(ranks, machine)
            parts["O(ranks)"] += seconds.pop("O(ranks)")
            parts[part] += sum(seconds.values())
        return parts

    def checkpoint(self, ranks, machine):
        writers = min(ranks, max(MOST_WRITERS, ranks // RANKS_A_WRITER))
        total = self.options.cells * self.options.row_bytes * ranks
        phase = self.phases.get("checkpoint write") or Phase("", [dict.fromkeys(KEYS, 0) | {"ranks": ranks}])
        bandwidth = min(machine["file_bandwidth"], writers * machine["file_writer"])
        return {
            "data": total / bandwidth,
            "opening": math.ceil(writers / machine["file_opens"]) * machine["file_open"],
            "agreeing": sum(phase.seconds(ranks, machine).values()),
        }

    def step(self, ranks, machine):
        """The parts of one step: work, pulls, the reduction for the time step, shares of set-up and checkpoints."""
        steps = 2 * math.ceil(math.log2(max(2, ranks)))
        return {
            "work": self.options.cells * self.options.cell_time,
            "pulls": self.options.pulls * self.pull(ranks, machine),
            "reduction": steps * machine["latency"] if ranks > 1 else 0.0,
            "set-up": sum(self.setup(ranks, machine).values()) / self.options.steps,
            "checkpoints": sum(self.checkpoint(ranks, machine).values()) / self.options.checkpoint_every,
        }


SETUP = ("context", "numbering", "mapping", "arrays", "binding")
KEYS = ("messages", "message_bytes", "collectives", "communicators", "collective_bytes", "memory_kept")


def report(model, name, machine, ranks):
    print(f"\n{name}: seconds of one step, and of set-up and checkpoints at a time")
    columns = ("work", "pulls", "reduction", "set-up", "checkpoints")
    print(f"{'ranks':>9}" + "".join(f"{c:>13}" for c in columns) + f"{'start':>11}{'checkpoint':>12}{'O(ranks)':>11}")
    crossed = {}
    for count in ranks:
        parts = model.step(count, machine)
        start = model.setup(count, machine)
        print(f"{count:>9}" + "".join(f"{parts[c]:>13.3g}" for c in columns)
              + f"{sum(start.values()):>11.3g}{sum(model.checkpoint(count, machine).values()):>12.3g}"
              + f"{start['O(ranks)']:>11.3g}")
        for part in columns[1:]:
            if parts[part] > LIMIT * sum(parts.values()):
                crossed.setdefault(part, count)
    for part in columns[1:]:
        where = f"from {crossed[part]} ranks on" if part in crossed else f"not up to {ranks[-1]} ranks"
        print(f"  {part} above {LIMIT:.0%} of a step: {where}")
    kept = sum(KEPT.values())
    print(f"  memory that grows with ranks: {kept:.0f} bytes a rank for each rank, "
          f"{kept * ranks[-1] * machine['ranks_per_node'] / 2**30:.1f} GiB a node at {ranks[-1]} ranks")


def plot(model, machines, ranks, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(machines), figsize=(4.2 * len(machines), 4), sharey=True, squeeze=False)
    for axis, (name, machine) in zip(axes[0], machines.items(), strict=True):
        parts = [model.step(count, machine) for count in ranks]
        for part in parts[0]:
            axis.loglog(ranks, [p[part] for p in parts], label=part, lw=2.5 if part == "work" else 1.5)
        total = [sum(p.values()) for p in parts]
        axis.loglog(ranks, [LIMIT * t for t in total], "k:", lw=1, label=f"{LIMIT:.0%} of a step")
        axis.set_title(name)
        axis.set_xlabel("ranks")
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("seconds of a step")
    axes[0][-1].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    print(f"\nwrote {path}")


def beside(counts, measured):
    """Predictions for ranks that share this machine's cores beside what they took.

    What one rank costs with each call is taken from the fewest ranks; then only the counts and the number of ranks
    that a core serves are known of the others.
    """
    print("\nThis machine: measured beside predicted milliseconds (costs of calls from the fewest ranks)")
    names = sorted({r["phase"] for r in measured} & {r["phase"] for r in counts})
    by = {name: sorted((r["ranks"], r) for r in measured if r["phase"] == name) for name in names}
    numbers = sorted({r["ranks"] for r in measured})
    print(f"{'phase':<18}" + "".join(f"{n:>18}" for n in numbers))

    def calls(record, ranks):
        steps = math.ceil(math.log2(max(2, ranks)))
        return record["messages"] + steps * (record["collectives"] + 4 * record["communicators"])

    ratios = []
    for name in names:
        first_ranks, first = by[name][0]
        each = first["microseconds"] / max(1, calls(first, first_ranks)) / first_ranks
        row = f"{name:<18}"
        for ranks, record in by[name]:
            predicted = each * max(1, calls(record, ranks)) * ranks
            ratios.append(record["microseconds"] / predicted)
            row += f"{record['microseconds'] / 1e3:>9.3g} /{predicted / 1e3:>7.3g}"
        print(row)
    ratios.sort()
    print(f"measured / predicted: median {ratios[len(ratios) // 2]:.2f}, from {ratios[0]:.2f} to {ratios[-1]:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("counts", help="JSON of bench_scale")
    known = ", ".join(MACHINES)
    parser.add_argument("--machine", action="append", help=f"one of {known}, or a JSON file; all by default")
    parser.add_argument("--cells", type=float, default=100_000, help="of each rank (default %(default)g)")
    parser.add_argument("--cell-time", type=float, default=1e-6, help="seconds of work a cell and step")
    parser.add_argument("--mesh-time", type=float, default=1e-5, help="seconds of work a cell to build the mesh")
    parser.add_argument("--row-bytes", type=float, default=40, help="of a cell, in pulls and checkpoints")
    parser.add_argument("--pulls", type=int, default=3, help="a step")
    parser.add_argument("--steps", type=int, default=10_000, help="over which set-up is spread")
    parser.add_argument("--checkpoint-every", type=int, default=1000, help="steps")
    parser.add_argument("--most-ranks", type=int, default=2**20)
    parser.add_argument("--plot", metavar="PNG")
    parser.add_argument("--beside", metavar="JSON", help="more records, to compare with predictions")
    options = parser.parse_args()

    def load(path):
        try:
            with open(path, encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError) as error:
            sys.exit(f"scale_model.py: {path}: {error}")

    counts = [r for r in load(options.counts) if r.get("benchmark") == "scale"]
    if not counts:
        sys.exit(f"scale_model.py: {options.counts} has no records of bench_scale")
    machines = {name: MACHINES[name] if name in MACHINES else load(name) for name in options.machine or MACHINES}
    ranks = [2**k for k in range(1, int(math.log2(options.most_ranks)) + 1)]
    model = Model(counts, options)
    for name, machine in machines.items():
        report(model, name, machine, ranks[::2] + ([ranks[-1]] if len(ranks) % 2 == 0 else []))
    if options.beside:
        beside(counts, [r for r in load(options.beside) if r.get("benchmark") == "scale"])
    if options.plot:
        plot(model, machines, ranks, options.plot)


if __name__ == "__main__":
    main()
