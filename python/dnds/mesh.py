"""python -m dnds.mesh info FILE: what is in a mesh file; under mpiexec all ranks read it together.

With --json it prints the keys of `dnds-mesh info --json`. Ends with 0, or with 2 where the file cannot be read.
"""

import argparse
import json
import sys

from mpi4py import MPI

import dnds


def text_of(report):
    """A report of a mesh as readable text."""
    lower, upper = ("(" + ", ".join(f"{x:g}" for x in report[side]) + ")" for side in ("lower", "upper"))
    cells = ", ".join(f"{count} {name}" for name, count in report["cells"].items())
    lines = [
        f"{report['origin']}: {report['dimension']}-dimensional, {report['cells_total']} cells, "
        f"{report['nodes']} nodes",
        f"  cells       {cells}",
        f"  box         {lower} to {upper}",
        f"  {'volume' if report['dimension'] == 3 else 'area':<11} {report['volume']:.12g}",
        f"  faces       {report['inner_faces']} inside, {report['boundary_faces']} at the boundary, "
        f"{report['periodic_pairs']} periodic pairs",
    ]
    lines += [f"  boundary    {name}: {faces} faces" for name, faces in report["patches"].items()]
    lines += [f"  doubtful    {warning}" for warning in report["warnings"]]
    lines += [f"  note        {note}" for note in report["notes"]]
    return "\n".join(lines)


def json_of(report):
    """The same for programs, as the program dnds-mesh prints it."""
    return {
        "cells": report["cells"],
        "cells_total": report["cells_total"],
        "nodes": report["nodes"],
        "measure": report["measure"],
        "volume": report["volume"],
        "bbox": [list(side) for side in zip(report["lower"], report["upper"], strict=True)],
        "boundaries": report["patches"],
        "faces_inner": report["inner_faces"],
        "faces_boundary": report["boundary_faces"],
        "faces_unassigned": report["unassigned_faces"],
        "periodic_pairs": report["periodic_pairs"],
        "warnings": report["warnings"],
        "notes": report["notes"],
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m dnds.mesh", description="Looks at mesh files.")
    commands = parser.add_subparsers(dest="command", required=True)
    info = commands.add_parser("info", help="cells by type, boundaries, volume")
    info.add_argument("file", help="a CGNS, Gmsh, SU2, UGRID, VTKHDF or VTU file, or a case of OpenFOAM")
    info.add_argument("--base", default="",
                      help="the base of a CGNS file, where several have cells; the zone of an SU2 file, "
                           "the region of a case of OpenFOAM")
    info.add_argument("--json", action="store_true", help="for programs: the keys of dnds-mesh info --json")
    options = parser.parse_args(arguments)

    comm = MPI.COMM_WORLD
    try:
        mesh = dnds.Mesh.read(options.file, comm, base=options.base, partitioner="curve")
    except dnds.Error as error:  # the same on all ranks
        if comm.rank == 0:
            print(f"dnds.mesh: {error.message}", file=sys.stderr)
        return 2
    if comm.rank == 0:
        print(json.dumps(json_of(mesh.report), indent=2) if options.json else text_of(mesh.report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
