#!/usr/bin/env python3
"""Steps on small meshes over networks of several latencies, beside what the model of scripts/scale_model.py predicts.

    scripts/bench.sh task --delays 0,5,20,100

Two "hosts" of one rank each, joined by a cable that delivers packets after a given time: test/network/two_hosts.sh.
Times are the least of a run, which other programs on the machine disturb least. The cable has a latency of its own, so
that the measured one counts.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from scale_model import message_time  # noqa: E402

SKIPPED = 77
STATE, GRADIENT = 8, 16  # bytes of a ghost in the two pulls of a step


def run(options, delay):
    """The records of bench_task on a network of this latency."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "records.json")
        # Few steps at once, as a network of a busy machine is seldom undisturbed; an even number, as a rank that begins
        # earlier than its peer waits for it in every other exchange.
        command = [str(ROOT / "test/network/two_hosts.sh"), "--ranks-per-host", "1",
                   "--cable", options.cable, f"{delay:g}",
                   options.program, "--what", "messages,latency", "--rank-cells", options.rank_cells,
                   "--steps", "2", "--blocks", str(options.blocks), "--block-seconds", str(options.block_seconds),
                   "--json", path]
        done = subprocess.run(command, text=True, capture_output=True)
        if done.returncode == SKIPPED:
            print(done.stdout.strip())
            sys.exit(0)
        if done.returncode != 0:
            sys.exit(f"latency.py: {' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        print("\n".join(line for line in done.stdout.splitlines() if line.startswith("cable")), flush=True)
        with open(path, encoding="utf-8") as file:
            return json.load(file)


class Network:
    """What the model needs to know of a run, in microseconds and bytes."""

    def __init__(self, records):
        self.records = records
        network = next(r for r in records if r["benchmark"] == "network")
        self.one_way = network["one_way_us"]
        overhead = min(network["overhead_us"], self.one_way)
        self.machine = {"latency": self.one_way - overhead, "overhead": overhead, "bandwidth": network["bytes_per_us"]}

    def of(self, benchmark, cells):
        return {r["method"]: r for r in self.records if r["benchmark"] == benchmark and r["cells_per_rank"] == cells}

    def step(self, method, cells):
        """Predicted time of a step: work, and of each pull what no work hides."""
        known = self.of("latency", cells)
        ghosts = known[method]["ghosts"]
        work, gradients, fluxes = (known[name]["least_us_per_step"] for name in (
            "work alone", "work alone, inner gradients", "work alone, inner fluxes"))

        def pull(width, beside):
            return self.machine["overhead"] + max(0, message_time(0, 1, ghosts * width, self.machine) - beside)

        if method.endswith(("pulls first", "no overlap")):
            gradients_beside = fluxes = 0
        else:
            gradients_beside = gradients
        if method == "plan, recomputing":  # gradients in the first of the two layers of ghosts
            return work + gradients * ghosts / 2 / (cells - ghosts / 2) + pull(STATE, gradients_beside)
        return work + pull(STATE, gradients_beside) + pull(GRADIENT, fluxes)

    def fields(self, method, cells):
        record = self.of("fields", cells)[method]
        count, size = record["fields"], STATE * record["ghosts"]
        if method.endswith("one message"):
            return message_time(1, 1, count * size, self.machine)
        latencies = count if method.endswith("in turn") else 1
        return message_time(count, latencies, count * size, self.machine)


def table(title, networks, rows, entry):
    head = [title, *(f"+{delay:g} us" for delay in networks)]
    lines = [head, ["---"] * len(head)]
    lines += [[row, *(entry(network, row) for network in networks.values())] for row in rows]
    print("\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines))


def number(value):
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def report(networks, cells):
    def entry(benchmark, key, predict):
        return lambda network, row: (f"{number(network.of(benchmark, cells)[row][key])} / "
                                     f"{number(predict(network, row, cells))}")

    first = next(iter(networks.values()))
    steps = [name for name in first.of("latency", cells) if not name.startswith("work alone")
             and "no drops" not in name]
    work = first.of("latency", cells)["work alone"]
    print(f"\n{cells} cells a rank, {work['ghosts']} ghosts, {number(work['least_us_per_step'])} us of work;"
          " microseconds, measured / predicted")
    table("a step", networks, steps, entry("latency", "least_us_per_step", Network.step))
    table("pull of 5 fields", networks, first.of("fields", cells), entry("fields", "least_us", Network.fields))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--delays", default="0,5,20,100", help="microseconds one way (default %(default)s)")
    parser.add_argument("--program", required=True, help="bench_task")
    parser.add_argument("--cable", required=True, help="dnds_cable")
    parser.add_argument("--rank-cells", default="2000,20000", help="meshes (default %(default)s)")
    parser.add_argument("--blocks", type=int, default=16, help="turns of each method (default %(default)s)")
    parser.add_argument("--block-seconds", type=float, default=0.02, help="of a turn (default %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write all records, with the key `delay_us`")
    options = parser.parse_args()

    networks = {float(delay): Network(run(options, float(delay))) for delay in options.delays.split(",")}
    for delay, network in networks.items():
        if network.one_way < delay:
            sys.exit(f"latency.py: a message took {network.one_way:.1f} us through a cable of {delay:g} us")
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    rows = {"one way": lambda n: n.one_way, "latency": lambda n: n.machine["latency"],
            "overhead of a message": lambda n: n.machine["overhead"], "MB/s": lambda n: n.machine["bandwidth"]}
    table("network", networks, rows, lambda network, row: number(rows[row](network)))
    for cells in options.rank_cells.split(","):
        report(networks, int(cells))
    if options.json:
        records = [record | {"delay_us": delay} for delay, network in networks.items() for record in network.records]
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(records, file, indent=1)


if __name__ == "__main__":
    main()
