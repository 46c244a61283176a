"""OpenFOAM's rhoCentralFoam and cases/euler on the same flow: Mach 2 over a corner of 10 degrees.

Both compute on the same grid of quadrilaterals (blockMesh here, the box with a ramp there) from the same uniform flow,
at second order. Two comparisons, programs in turns:

* the cost of a step on many cells, in seconds;
* error against seconds: the steps until the flow stands still, and the mean deviation of the pressure from the exact
  shock (theta-beta-Mach relation; Anderson, Modern Compressible Flow), relative to the pressure behind it.

rhoCentralFoam: Kurganov's flux, van Leer's limiter, Euler steps at its tutorials' Courant number of 0.2: one evaluation
of the fluxes a step. cases/euler: HLLC, Venkatakrishnan's limiter, three stages (SSP-RK3) at 0.8.

Seconds are those of steps, without set-up and files: of cases/euler on the clock, of rhoCentralFoam the processor time
of rank 0, all that its log has in fractions of a second. Both spin while they wait for messages. Debian compiles
OpenFOAM for any x86-64, and so does the preset `release`, which is the default here.

Needs rhoCentralFoam (Debian: openfoam), numpy and h5py. Where OpenFOAM is absent, it says SKIPPED and ends with 77.
"""

import argparse
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy

ROOT = Path(__file__).resolve().parents[2]
GAMMA, GAS, PRESSURE, TEMPERATURE, MACH = 1.4, 287.87, 1e5, 300.0, 2.0
CORNER, LENGTH, HEIGHT, ANGLE = 0.5, 1.5, 1.0, math.radians(10)
SPEED = MACH * math.sqrt(GAMMA * GAS * TEMPERATURE)
END = 4 * LENGTH / SPEED  # four times through the channel: the shock stands still


def grid(cells):
    """Cells before the corner, behind it, and across, about square."""
    across = max(4, round(math.sqrt(cells / 1.5)))
    before = round(across * CORNER)
    return before, 2 * before, across


def shock():
    """The angle of the weak shock, and the pressure behind it over that before it."""

    def deflection(beta):
        s = MACH**2 * math.sin(beta) ** 2
        return math.atan(2 / math.tan(beta) * (s - 1) / (MACH**2 * (GAMMA + math.cos(2 * beta)) + 2))

    low, high = math.asin(1 / MACH), math.radians(60)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if deflection(middle) < ANGLE else (low, middle)
    return low, 1 + 2 * GAMMA / (GAMMA + 1) * ((MACH * math.sin(low)) ** 2 - 1)


def error(centres, pressure):
    """Mean of |p - exact p| over the cells, relative to the exact pressure behind the shock."""
    angle, ratio = shock()
    behind = centres[:, 1] < (centres[:, 0] - CORNER) * math.tan(angle)
    exact = numpy.where(behind, ratio, 1.0)
    return float(numpy.mean(numpy.abs(pressure / PRESSURE - exact)) / ratio)


# ----------------------------------------------------------------------------------------------------------------------
# OpenFOAM


def foam_file(path, kind, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    header = f"FoamFile {{ version 2.0; format ascii; class {kind}; object {path.name}; }}\n"
    path.write_text(header + text)


def foam_field(path, kind, dimensions, value, wall):
    foam_file(
        path,
        kind,
        f"dimensions {dimensions};\ninternalField uniform {value};\nboundaryField\n{{\n"
        f"    inlet {{ type fixedValue; value uniform {value}; }}\n"
        "    outlet { type zeroGradient; }\n"
        f"    walls {{ type {wall}; }}\n    sides {{ type empty; }}\n}}\n",
    )


def foam_case(folder, cells, ranks, control):
    """Writes a case, makes its mesh and divides it."""
    before, behind, across = grid(cells)
    rise = (LENGTH - CORNER) * math.tan(ANGLE)
    corners = [(0, 0), (CORNER, 0), (LENGTH, rise), (0, HEIGHT), (CORNER, HEIGHT), (LENGTH, HEIGHT)]
    points = "\n".join(f"({x} {y} {z})" for z in (0, 0.01) for x, y in corners)
    foam_file(
        folder / "system/blockMeshDict",
        "dictionary",
        f"scale 1;\nvertices\n(\n{points}\n);\n"
        f"blocks ( hex (0 1 4 3 6 7 10 9) ({before} {across} 1) simpleGrading (1 1 1)\n"
        f"         hex (1 2 5 4 7 8 11 10) ({behind} {across} 1) simpleGrading (1 1 1) );\n"
        "edges ();\nboundary\n(\n"
        "    inlet { type patch; faces ((0 6 9 3)); }\n    outlet { type patch; faces ((2 5 11 8)); }\n"
        "    walls { type patch; faces ((0 1 7 6) (1 2 8 7) (3 9 10 4) (4 10 11 5)); }\n"
        "    sides { type empty; faces ((0 3 4 1) (1 4 5 2) (6 7 10 9) (7 8 11 10)); }\n);\nmergePatchPairs ();\n",
    )
    foam_file(
        folder / "constant/thermophysicalProperties",
        "dictionary",
        "thermoType { type hePsiThermo; mixture pureMixture; transport const; thermo hConst;\n"
        "    equationOfState perfectGas; specie specie; energy sensibleInternalEnergy; }\n"
        f"mixture {{ specie {{ molWeight {8314.47 / GAS}; }}\n"
        f"    thermodynamics {{ Cp {GAMMA / (GAMMA - 1) * GAS}; Hf 0; }} transport {{ mu 0; Pr 1; }} }}\n",
    )
    foam_file(folder / "constant/turbulenceProperties", "dictionary", "simulationType laminar;\n")
    foam_field(folder / "0/p", "volScalarField", "[1 -1 -2 0 0 0 0]", PRESSURE, "zeroGradient")
    foam_field(folder / "0/T", "volScalarField", "[0 0 0 1 0 0 0]", TEMPERATURE, "zeroGradient")
    foam_field(folder / "0/U", "volVectorField", "[0 1 -1 0 0 0 0]", f"({SPEED} 0 0)", "slip")
    foam_file(
        folder / "system/fvSchemes",
        "dictionary",
        "fluxScheme Kurganov;\nddtSchemes { default Euler; }\ngradSchemes { default Gauss linear; }\n"
        "divSchemes { default none; div(tauMC) Gauss linear; }\nlaplacianSchemes { default Gauss linear corrected; }\n"
        "interpolationSchemes { default linear; reconstruct(rho) vanLeer; reconstruct(U) vanLeerV;"
        " reconstruct(T) vanLeer; }\nsnGradSchemes { default corrected; }\n",
    )
    foam_file(
        folder / "system/fvSolution",
        "dictionary",
        'solvers { "(rho|rhoU|rhoE)" { solver diagonal; } }\n',
    )
    foam_file(
        folder / "system/controlDict",
        "dictionary",
        "application rhoCentralFoam;\nstartFrom startTime;\nstartTime 0;\nstopAt endTime;\nwriteFormat ascii;\n"
        "writePrecision 10;\ntimePrecision 10;\nrunTimeModifiable no;\nwriteControl runTime;\n" + control,
    )
    foam_file(
        folder / "system/decomposeParDict",
        "dictionary",
        f"numberOfSubdomains {ranks};\nmethod simple;\nsimpleCoeffs {{ n ({ranks} 1 1); delta 0.001; }}\n",
    )
    run_quietly(["blockMesh", "-case", folder])
    if ranks > 1:
        run_quietly(["decomposePar", "-case", folder])


def run_quietly(command):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"openfoam.py: {command[0]} failed:\n{(result.stdout + result.stderr)[-2000:]}")
    return result.stdout


def foam_run(folder, ranks):
    """Its clock at the end of each step, in seconds."""
    command = ["rhoCentralFoam", "-case", folder]
    if ranks > 1:
        command = [ROOT / "scripts/mpirun.sh", ranks, *command, "-parallel"]
    log = run_quietly(command)
    return [float(value) for value in re.findall(r"ExecutionTime = ([\d.e+-]+) s", log)]


def foam_values(path):
    """Numbers or vectors of an internal field in text."""
    text = path.read_text()
    begin = text.index("(", text.index("internalField"))
    words = text[begin : text.index("\n)\n", begin)].replace("(", " ").replace(")", " ").split()
    return numpy.array([float(word) for word in words])


def foam_error(folder, ranks, cells):
    if ranks > 1:
        run_quietly(["reconstructPar", "-latestTime", "-case", folder])
    times = [float(entry.name) for entry in folder.iterdir() if re.fullmatch(r"[\d.e+-]+", entry.name)]
    last = next(e for e in folder.iterdir() if re.fullmatch(r"[\d.e+-]+", e.name) and float(e.name) == max(times))
    before, behind, across = grid(cells)
    centres = []
    for first, count, length in ((0.0, before, CORNER), (CORNER, behind, LENGTH - CORNER)):
        for j in range(across):
            for i in range(count):
                x = first + (i + 0.5) / count * length
                floor = max(0.0, x - CORNER) * math.tan(ANGLE)
                centres.append((x, floor + (j + 0.5) / across * (HEIGHT - floor)))
    return error(numpy.array(centres), foam_values(last / "p"))


# ----------------------------------------------------------------------------------------------------------------------
# cases/euler


def euler_run(euler, folder, cells, ranks, time):
    """The report of a run, which leaves its fields in the folder."""
    before, behind, across = grid(cells)
    folder.mkdir(parents=True, exist_ok=True)
    configuration = {
        "mesh": {
            "box": {
                "fill": "quadrilaterals",
                "cells": [before + behind, across],
                "lengths": [LENGTH, HEIGHT],
                "floor": {"kind": "ramp", "start": CORNER, "angle": math.degrees(ANGLE)},
            }
        },
        "gas": {"gamma": GAMMA, "gasConstant": GAS},
        "reference": {"pressure": PRESSURE, "temperature": TEMPERATURE, "mach": MACH},
        "boundaries": {"x-": "supersonic inflow", "x+": "supersonic outflow", "y-": "wall", "y+": "wall"},
        "scheme": {"flux": "hllc", "limiter": "venkatakrishnan"},
        "time": {"mode": "unsteady", "cfl": 0.8, **time},
        "output": {"folder": str(folder), "historyEvery": 100000},
    }
    (folder / "case.json").write_text(json.dumps(configuration))
    run_quietly([ROOT / "scripts/mpirun.sh", ranks, euler, folder / "case.json", "--progress", "none"])
    return json.loads((folder / "run.json").read_text())


def euler_error(folder):
    with h5py.File(folder / "fields.vtkhdf") as file:
        group = file["VTKHDF"]
        corners = group["Points"][:][group["Connectivity"][:].reshape(-1, 4)]
        return error(corners.mean(axis=1), group["CellData/pressure"][:])


# ----------------------------------------------------------------------------------------------------------------------


def compare_steps(arguments, folder, ranks, records):
    cells, steps = arguments.cells, arguments.steps
    foam_case(folder / "foam", cells, ranks, f"endTime {steps}e-8;\ndeltaT 1e-8;\nwriteInterval 1;\n")
    ours, theirs = [], []
    for _ in range(arguments.turns):
        clock = foam_run(folder / "foam", ranks)
        theirs.append((clock[-1] - clock[4]) / (len(clock) - 5))  # the first steps touch memory
        costs = euler_run(arguments.euler, folder / "euler", cells, ranks, {"steps": steps})["costs"]
        ours.append(costs["seconds"] / costs["steps"])
    our, their = statistics.median(ours), statistics.median(theirs)
    records.append(
        {
            "benchmark": "openfoam steps",
            "cells": cells,
            "ranks": ranks,
            "euler_seconds_a_step": our,
            "openfoam_seconds_a_step": their,
            "ratio_of_steps": our / their,
            "ratio_of_flux_evaluations": our / 3 / their,
        }
    )
    print(f"{ranks:5}  {their:14.4f} {our:14.4f} {our / their:10.2f} {our / 3 / their:12.2f}", flush=True)


def compare_errors(arguments, folder, cells, ranks, records):
    foam_case(
        folder / "foam",
        cells,
        ranks,
        f"endTime {END:.6e};\ndeltaT 1e-8;\nadjustTimeStep yes;\nmaxCo 0.2;\nmaxDeltaT 1;\nwriteInterval {END:.6e};\n",
    )
    clock = foam_run(folder / "foam", ranks)
    their = clock[-1] - clock[0]
    their_error = foam_error(folder / "foam", ranks, cells)
    our = euler_run(arguments.euler, folder / "euler", cells, ranks, {"end": END})["costs"]["seconds"]
    our_error = euler_error(folder / "euler")
    records.append(
        {
            "benchmark": "openfoam error",
            "cells": cells,
            "ranks": ranks,
            "euler_seconds": our,
            "euler_error": our_error,
            "openfoam_seconds": their,
            "openfoam_error": their_error,
            "ratio_of_seconds": our / their,
            "ratio_of_errors": our_error / their_error,
        }
    )
    print(f"{cells:7} {their:10.2f} {their_error:10.5f} {our:10.2f} {our_error:10.5f} {our / their:8.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench.sh euler --openfoam", description=__doc__.splitlines()[0])
    parser.add_argument("--euler", type=Path, required=True, help="the program of cases/euler")
    parser.add_argument("--cells", type=int, default=300000, help="for the cost of a step")
    parser.add_argument("--steps", type=int, default=30, help="for the cost of a step, in a turn")
    parser.add_argument("--turns", type=int, default=3, help="of both programs, for the cost of a step")
    parser.add_argument("--ranks", default="1,2", help="the cost of a step on each of these; errors on the last")
    parser.add_argument("--errors", default="3750,15000,60000", help="cells of the runs whose errors are compared")
    parser.add_argument("--json", type=Path, help="write the records to this file")
    arguments = parser.parse_args()
    if shutil.which("rhoCentralFoam") is None:
        print("SKIPPED: rhoCentralFoam is not installed (Debian: apt-get install openfoam)")
        sys.exit(77)
    if not arguments.euler.exists():
        sys.exit(f"openfoam.py: {arguments.euler} is not built; scripts/bench.sh euler --openfoam builds it")
    os.environ.setdefault("WM_PROJECT_DIR", "/usr/share/openfoam")  # where Debian's package has its settings
    if arguments.steps < 10:
        parser.error("--steps is at least 10: the first five are not counted")
    ranks = [int(word) for word in arguments.ranks.split(",")]
    records = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"seconds a step, {arguments.cells} cells, medians of {arguments.turns} turns")
        print("ranks  rhoCentralFoam    cases/euler  of a step  of one flux", flush=True)
        for count in ranks:
            compare_steps(arguments, folder / f"steps{count}", count, records)
        print(f"until the flow stands still, {ranks[-1]} ranks: seconds, and mean error of the pressure")
        print("  cells  OpenFOAM's      error      euler      error  seconds", flush=True)
        for cells in (int(word) for word in arguments.errors.split(",")):
            compare_errors(arguments, folder / f"error{cells}", cells, ranks[-1], records)
    if arguments.json:
        arguments.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
