"""What scripts/bench.sh --record runs and keeps of each benchmark, and the tables of docs/reference/performance.md.

A ratio divides a time of DNDS by that of a baseline measured in the same run, unless the column's title says otherwise.
Times of microseconds are compared by the least of a run, which other programs on the machine disturb least (Chen and
Revels, Robust benchmarking in noisy environments, 2016).
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Column:
    title: str
    ratio: str  # its key in the records
    where: dict = field(default_factory=dict)  # the cases of this column, by values of their keys


@dataclass(frozen=True)
class Table:
    rows: dict  # keys of a case that name the row, with the titles of their columns
    columns: tuple
    where: dict = field(default_factory=dict)  # only these cases; a tuple of values means any of them


@dataclass(frozen=True)
class Program:
    case: tuple  # keys of a record that name its case; the number of ranks is added
    ratios: tuple  # keys of ratios
    tables: tuple
    arguments: str = ""
    ranks: tuple = (2,)
    only: dict = field(default_factory=dict)  # records of other values are not kept
    method: str = ""  # the key that tells baselines from DNDS, for ratios of least times
    least: dict = field(default_factory=dict)  # keys of such ratios, and the baselines of which the fastest counts


def columns(key, ratios, *values, **where):
    """For each value of a key, a column for each ratio; `ratios` has their titles."""
    return tuple(Column(f"{value} / {title}", ratio, {key: value, **where})
                 for ratio, title in ratios.items() for value in values)


def on_ranks(ratio, *counts, **where):
    return tuple(Column(f"{count} rank{'s' if count > 1 else ''}", ratio, {"ranks": count, **where})
                 for count in counts)


MOVES = tuple(f"move {share} %, {what}" for share in (10, 50) for what in ("mesh", "with 10 fields"))
PROGRAMS = {
    "exchange": Program(
        arguments="--grids 64 --widths 1,5,20 --states used --transports packed,node-shared "
                  "--blocks 4 --block-seconds 0.01",
        case=("benchmark", "grid", "numbering", "doubles_per_row", "state", "transport", "stage"),
        ratios=("ratio_to_raw_mpi", "ratio_to_petsc", "ratio_to_petsc_with_translation"),
        only={"transport": ("packed", "node-shared")},
        method="transport",
        least={"least_to_raw_mpi": ("raw_mpi",), "least_to_shared_by_hand": ("shared_by_hand",),
               "least_to_petsc": ("petsc_sf",)},
        tables=(
            Table({"grid": "pull", "numbering": "rows", "doubles_per_row": "doubles a row"},
                  (*columns("transport", {"least_to_raw_mpi": "MPI by hand", "least_to_petsc": "PETSc"}, "packed",
                            "node-shared"),
                   Column("node-shared / stores by hand", "least_to_shared_by_hand", {"transport": "node-shared"})),
                  {"benchmark": "pull", "doubles_per_row": (1, 20)}),
            Table({"grid": "grid", "stage": "set-up until"},
                  columns("transport", {"least_to_raw_mpi": "MPI by hand"}, "packed", "node-shared"),
                  {"benchmark": "setup", "stage": "first_pull"}),
        )),
    "blocks": Program(
        arguments="--edges 64 --widths 1 --cuts x,z --transports auto --blocks 4 --block-seconds 0.01",
        case=("case", "components", "method"),
        ratios=("ratio_to_by_hand", "ratio_to_strided_copy", "ratio_to_global_to_local", "ratio_to_local_to_local",
                "ratio_to_p4est"),
        only={"method": ("auto",)},
        method="method",
        least={"least_to_by_hand": ("packed by hand", "subarray types"), "least_to_strided_copy": ("strided copy",),
               "least_to_global_to_local": ("DMDA global-to-local",),
               "least_to_local_to_local": ("DMDA local-to-local",), "least_to_p4est": ("p4est",)},
        tables=(Table({"case": "ghosts of"}, (
            Column("time / MPI by hand", "least_to_by_hand"),
            Column("/ a copy in the process", "least_to_strided_copy"),
            Column("/ DMDA, which copies all cells", "least_to_global_to_local"),
            Column("/ DMDA, ghosts alone", "least_to_local_to_local"),
            Column("/ p4est", "least_to_p4est")),
            {"components": 5, "case": ("64^3 x 5, 1 ghost, x (1 x 1 x 2)", "64^3 x 5, 1 ghost, z (2 x 1 x 1)",
                                       "64 blocks of 32^3 a rank", "one block of 128^3 a rank",
                                       "64 own blocks of 32^3")}),)),
    "mesh": Program(
        arguments="--cases tetrahedra:100000 --repeats 3",
        case=("fill", "cells", "method"),
        ratios=("ratio_to_dmplex", "memory_ratio_to_dmplex"),
        only={"method": ("dnds", "dnds_curve")},
        tables=(Table({"cells": "cells", "method": "method"}, (
            Column("time without partitioner / DMPlex", "ratio_to_dmplex"),
            Column("memory / DMPlex", "memory_ratio_to_dmplex"))),)),
    "partition": Program(
        arguments="--cells 100000 --repeats 3 --parts 4,64",
        case=("cells", "parts", "method"),
        ratios=("ratio_to_thorough", "cut_ratio_to_thorough"),
        only={"method": ("curve", "PT-Scotch, quick")},
        tables=(Table({"parts": "parts", "method": "by"}, (
            Column("time / PT-Scotch, thorough", "ratio_to_thorough"),
            Column("faces cut / those", "cut_ratio_to_thorough")), {"parts": 64}),)),
    "repartition": Program(
        arguments="--cells 100000 --repeats 3",
        case=("cells", "method"),
        ratios=("ratio_to_anew", "ratio_to_dmplex"),
        only={"method": (*MOVES, "anew, curve", "targets, curve", "targets, PT-Scotch")},
        tables=(Table({"method": "what"}, (
            Column("time / rebuilding", "ratio_to_anew"),
            Column("/ DMPlex", "ratio_to_dmplex")), {"method": MOVES[1::2]}),)),
    "euler": Program(
        arguments="--cells 50000 --steps 20 --turns 7",
        case=("benchmark", "way", "method", "fill", "cells"),
        ratios=("ratio_to_own_meshes", "speed_up", "ratio_to_by_hand", "processor_ratio_to_by_hand"),
        only={"way": ("all ranks", "all ranks, no overlap"), "method": ("dnds",)},
        tables=(
            Table({"way": "solver", "cells": "triangles"}, (
                Column("cells a second / one rank's", "speed_up"),
                Column("/ a mesh for each rank", "ratio_to_own_meshes")), {"benchmark": "solver", "way": "all ranks"}),
            Table({"cells": "a flow loop of first order, quadrilaterals"}, (
                Column("time / by hand", "ratio_to_by_hand"),
                Column("processor time / by hand", "processor_ratio_to_by_hand")), {"benchmark": "airfoil"}),
        )),
    "task": Program(
        ranks=(1, 2),
        arguments="--what plans,latency,threads --blocks 4 --task-rows 8 --rank-cells 500 --shared-cells 20000",
        case=("benchmark", "method", "where", "threads", "shape", "tasks", "rows", "cells_per_rank", "cells"),
        ratios=("ratio_to_by_hand", "speed_to_ranks", "ratio_to_plan"),
        only={"method": ("flow graph", "by hand, pulls first", "plan", "plan, recomputing", "1 rank",
                         "1 rank, 2 threads")},
        tables=(
            Table({"shape": "small tasks", "tasks": "tasks"}, tuple(
                Column(f"overhead, oneTBB's flow graph / plan, {count} thread{'s' if count > 1 else ''}",
                       "ratio_to_plan", {"threads": count}) for count in (1, 2)),
                {"benchmark": "plans", "method": "flow graph", "ranks": 1}),
            Table({"method": "a step on small meshes", "cells_per_rank": "cells a rank"}, (
                Column("time / by hand", "ratio_to_by_hand"),),
                {"benchmark": "latency", "method": ("plan", "plan, recomputing"), "ranks": 2}),
        )),
    "one_sided": Program(
        arguments="--blocks 4 --block-seconds 0.01",
        case=("operation", "method", "baseline"),
        ratios=("ratio_to_baseline", "least_to_baseline"),
        tables=(Table(
            {"operation": "operation of a heap"},
            tuple(Column(f"time / {title}", "least_to_baseline", {"baseline": names}) for title, names in (
                ("MPI_Win_allocate", "MPI_Win_allocate"), ("shared window", "shared window"),
                ("by hand", ("copy and fence", "copy", "by hand")))),
            {"method": "heap", "operation": ("put, complete 8 B", "get 8 B", "put, complete 1024 KiB", "get 1024 KiB",
                                             "fetch and add", "round 8 B")}),)),
    "sparse": Program(
        arguments="--grid 8 --repeats 5",
        case=("presence",),
        ratios=("time_ratio", "bytes_ratio", "memory_ratio"),
        tables=(Table({"presence": "% present"}, (
            Column("time / dense", "time_ratio"), Column("bytes / dense", "bytes_ratio"),
            Column("memory / dense", "memory_ratio")), {"presence": (1.0, 20.0, 100.0)}),)),
    "linear": Program(
        ranks=(1, 2),
        arguments="--rows 100000 --iterations 30 --repeats 3",
        case=("method", "rows"),
        ratios=("ratio_to_plain_sums",),
        tables=(Table({"method": "an iteration with exact sums / without"}, on_ranks("ratio_to_plain_sums", 1, 2),
                      {"method": ("cg", "bicgstab", "gmres")}),)),
    "assembly": Program(
        ranks=(1, 2),
        arguments="--cells 20 --repeats 5",
        case=("method",),
        ratios=("ratio_to_baseline",),
        only={"method": ("push accumulators", "gather")},
        tables=(Table({"method": "sums at nodes / push of float64"}, on_ranks("ratio_to_baseline", 1, 2)),)),
    "serialize": Program(
        arguments="--folder build --repeats 3",
        case=("method", "scattered"),
        ratios=("ratio_to_baseline",),
        only={"method": ("write checkpoint", "read checkpoint", "write MPI-IO", "read MPI-IO")},
        tables=(Table({"method": "time / each rank's bytes: written with fsync, read from the page cache"},
                      on_ranks("ratio_to_baseline", 2), {"method": ("write checkpoint", "read checkpoint")}),)),
    "python": Program(
        case=("case", "width"),
        ratios=("ratio",),
        tables=(Table({"case": "pull", "width": "doubles a row"}, (Column("Python / C++", "ratio"),),
                      {"width": (1, 20)}),)),
}
