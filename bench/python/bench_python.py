"""What a pull costs from Python beside the same pull from C++, and beside PetscSF (petsc4py) where it is installed.

    scripts/bench.sh python [--quick] [--json FILE]

All methods take turns in each repetition, in an order that changes; medians are printed, and what Python adds.
"""

import argparse
import json
import random
import statistics
import time

import dnds
import numpy as np
from mpi4py import MPI

COMM = MPI.COMM_WORLD


def processor():
    """Its name as the system knows it."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.split(": ", 1)[1].strip() for line in file if line.startswith("model name")]
    return names[0] if names else "unknown"


def python_pulls(field, count):
    """Seconds that a pull takes in a loop of Python."""
    pull = field.pull
    begin = time.perf_counter()
    for _ in range(count):
        pull()
    return (time.perf_counter() - begin) / count


def petsc_pulls(field, width):
    """The same exchange as a star forest, or None."""
    try:
        from petsc4py import PETSc
    except ImportError:
        return None
    owned = field.owned_count
    firsts = np.array(COMM.allgather(owned)).cumsum() - COMM.allgather(owned)
    rows = field.global_rows[owned:]
    owners = np.searchsorted(firsts, rows, side="right") - 1
    forest = PETSc.SF().create(COMM)
    remote = np.stack([owners, rows - firsts[owners]], axis=1).astype(np.int32)
    forest.setGraph(owned, None, remote)
    unit = MPI.DOUBLE.Create_contiguous(width).Commit()
    father, son = np.ones(owned * width), np.zeros(len(rows) * width)

    def run(count):
        begin = time.perf_counter()
        for _ in range(count):
            forest.bcastBegin(unit, father, son, MPI.REPLACE)
            forest.bcastEnd(unit, father, son, MPI.REPLACE)
        return (time.perf_counter() - begin) / count

    return run


def measure(name, field, width, repetitions, count, seed=1):
    """Medians over repetitions of the slowest rank's microseconds a pull, by method."""
    methods = {"c++": field._time_pulls, "python": lambda n: python_pulls(field, n)}
    if petsc := petsc_pulls(field, width):
        methods["petsc4py"] = petsc
    for method in methods.values():
        method(3)  # sets up, and warms up
    times = {method: [] for method in methods}
    order = random.Random(seed)  # the same on all ranks
    for _ in range(repetitions):
        for method in order.sample(sorted(methods), len(methods)):
            COMM.Barrier()
            times[method].append(COMM.allreduce(methods[method](count), MPI.MAX) * 1e6)
    medians = {method: statistics.median(values) for method, values in times.items()}
    added = statistics.median(p - c for p, c in zip(times["python"], times["c++"], strict=True))
    return {"case": name, "ranks": COMM.size, "ghosts": COMM.allreduce(field.ghost_count, MPI.MAX), "width": width,
            "microseconds": medians, "added": added, "ratio": medians["python"] / medians["c++"],
            "mpi": MPI.Get_library_version().split(",")[0], "cpu": processor()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few repetitions")
    parser.add_argument("--json", help="write the records to this file")
    options = parser.parse_args()
    repetitions, count = (5, 50) if options.quick else (41, 200)

    mesh = dnds.Mesh.box("hexahedra", (32, 32, 32), partitioner="curve")
    alone = dnds.Field(1000)
    alone.set_ghosts([])
    records = [measure("no peers", alone, 1, repetitions, count)]
    for width in (1, 5, 20):
        field = mesh.field(width)
        field.owned[:] = 1
        records.append(measure("box 32^3", field, width, repetitions, count))
    if COMM.rank == 0:
        print(f"microseconds a pull, medians of {repetitions} repetitions of {count} pulls")
        print(f"{'case':<10} {'ranks':>5} {'ghosts':>7} {'width':>5} {'c++':>9} {'python':>9} {'petsc4py':>9} "
              f"{'added':>7} {'ratio':>6}")
        for record in records:
            times = record["microseconds"]
            petsc = f"{times['petsc4py']:9.2f}" if "petsc4py" in times else f"{'-':>9}"
            case = f"{record['case']:<10} {record['ranks']:>5} {record['ghosts']:>7} {record['width']:>5}"
            both = f"{times['c++']:>9.2f} {times['python']:>9.2f}"
            print(f"{case} {both} {petsc} {record['added']:>7.2f} {record['ratio']:>6.2f}")
        if options.json:
            with open(options.json, "w") as file:
                json.dump(records, file, indent=1)


if __name__ == "__main__":
    main()
