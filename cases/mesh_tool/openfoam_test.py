#!/usr/bin/env python3
"""Compares the output of COMMAND (mpiexec ... dnds-mesh) with that of checkMesh for meshes of OpenFOAM's tutorials:
cells by type, nodes, faces, sizes of patches, bounding box, volume. blockMesh makes most of them, as text and as binary
files, some compressed.

    openfoam_test.py COMMAND...

Ends with 77, a skipped test, where OpenFOAM or its tutorials (Debian's package openfoam-examples) are not installed.

FOAM_TUTORIALS=FOLDER: OpenFOAM's tutorials, from which a test takes meshes (default: those of Debian)
"""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# Made by blockMesh.
BLOCKS = [
    "incompressible/icoFoam/cavity/cavity",
    "incompressible/simpleFoam/pipeCyclic",  # cyclic by rotation (faces match), prisms at the axis
    "discreteMethods/dsmcFoam/freeSpacePeriodic",  # cyclic by translation, in three directions
    "incompressible/pimpleFoam/laminar/planarPoiseuille",
    "incompressible/pimpleFoam/laminar/movingCone",  # a wedge
    "incompressible/pisoFoam/LES/motorBike/motorBike",  # a box of 1280 hexahedra
]
# With the files of the mesh.
MESHES = [
    "incompressible/simpleFoam/airFoil2D",  # neighbours of all faces, as versions before 1.5 wrote them
    "multiphase/driftFluxFoam/RAS/tank3D",
    "finiteArea/sphereSurfactantFoam/sphereTransport",
    "incompressible/adjointOptimisationFoam/resources/meshes/naca0012",
    "incompressible/adjointOptimisationFoam/resources/meshes/sbend",
]
HEADER = "FoamFile {{ version 2.0; format ascii; class dictionary; object {}; }}\n"
CONTROL = """application none; startFrom startTime; startTime 0; stopAt endTime; endTime 1; deltaT 1;
writeControl timeStep; writeInterval 1; writePrecision 12; writeFormat {}; writeCompression {};
"""
SCHEMES = "ddtSchemes {} gradSchemes {} divSchemes {} laplacianSchemes {} interpolationSchemes {} snGradSchemes {}\n"
TYPES = {"HEXA_8": "hexahedra", "PENTA_6": "prisms", "PYRA_5": "pyramids", "TETRA_4": "tetrahedra"}


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def run(*command):
    # What the shell's set-up of OpenFOAM sets; where Debian has it
    environment = {"WM_PROJECT_DIR": "/usr/share/openfoam"} | os.environ
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def number(text, pattern):
    found = re.search(pattern, text)
    assert found, f"no {pattern} in:\n{text}"
    return float(found[1])


def patches(case):
    """Names, types and sizes of the patches."""
    path = case / "constant/polyMesh/boundary"
    text = path.read_text() if path.exists() else gzip.open(f"{path}.gz", "rt").read()
    text = text[text.index("// * *"):]
    return {name: (re.search(r"type\s+(\w+)", entry)[1], int(number(entry, r"nFaces\s+(\d+)")))
            for name, entry in re.findall(r"(\S+)\s*\{([^{}]*)\}", text)}


def compare(case, command):
    check = run("checkMesh", "-case", str(case))
    info = json.loads(run(*command, "info", str(case), "--json"))
    assert info["nodes"] == number(check, r"points: +(\d+)"), "nodes"
    assert info["cells_total"] == number(check, r"\bcells: +(\d+)"), "cells"
    assert info["faces_inner"] == number(check, r"internal faces: +(\d+)"), "inner faces"
    for ours, theirs in TYPES.items():
        assert info["cells"].get(ours, 0) == number(check, rf"\b{theirs}: +(\d+)"), theirs
    sizes = patches(case)
    cyclic = [name for name, (kind, _) in sizes.items() if kind == "cyclic"]
    assert 2 * info["periodic_pairs"] == sum(sizes[name][1] for name in cyclic), "periodic pairs"
    wanted = {name: size for name, (_, size) in sizes.items() if name not in cyclic and size > 0}
    named = {name: size for name, size in info["boundaries"].items() if size > 0}
    assert named == wanted, f"{named} are not {wanted}"
    low, high = re.search(r"bounding box \(([^()]*)\) \(([^()]*)\)", check).groups()
    box = [float(x) for x in f"{low} {high}".split()]
    size = max(b - a for a, b in info["bbox"])
    for axis, (low, high) in enumerate(info["bbox"]):
        assert abs(low - box[axis]) + abs(high - box[axis + 3]) < 1e-5 * size, "bounding box"
    volume = number(check, r"Total volume = (\S+)\. ")
    assert abs(info["volume"] - volume) < 1e-5 * volume, f"volume {info['volume']}, not {volume}"
    assert not info["warnings"], info["warnings"]
    print(f"  {case.name}: {info['cells']}, volume {info['volume']:.6g}, {info['periodic_pairs']} periodic pairs")


def refused(case, command, text):
    done = subprocess.run([*command, "info", str(case)], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and text in done.stderr, done.stderr


def copied(source, folder, kind, compression):
    """A case with what is needed of another one."""
    case = folder / f"{source.name}_{kind}"
    (case / "system").mkdir(parents=True)
    control = CONTROL.format("binary" if kind == "binary" else "ascii", compression)
    for name, content in (("controlDict", control), ("fvSchemes", SCHEMES), ("fvSolution", "")):
        (case / "system" / name).write_text(HEADER.format(name) + content)
    for mesh in (source / "constant/polyMesh", source / "polyMesh"):
        if mesh.is_dir():
            shutil.copytree(mesh, case / "constant/polyMesh")
    for dictionary in (source / "system").glob("blockMeshDict*"):
        text = gzip.open(dictionary, "rt").read() if dictionary.suffix == ".gz" else dictionary.read_text()
        (case / "system/blockMeshDict").write_text(text.replace("cyclicAMI", "cyclic"))
    return case


def main():
    command = sys.argv[1:]
    for program in ("blockMesh", "checkMesh"):
        if not shutil.which(program):
            skip(f"OpenFOAM's {program} is not installed")
    tutorials = Path(os.environ.get("FOAM_TUTORIALS", "/usr/share/doc/openfoam-examples/examples"))
    if not (tutorials / BLOCKS[0]).is_dir():
        skip(f"no tutorials of OpenFOAM in {tutorials}")
    compared = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for k, name in enumerate(BLOCKS):
            if not list((tutorials / name / "system").glob("blockMeshDict*")):
                print(f"  {name} is not in this version")
                continue
            kind, compression = (("binary", "on"), ("ascii", "off"), ("binary", "off"))[k % 3]
            case = copied(tutorials / name, folder, kind, compression)
            run("blockMesh", "-case", str(case))
            compare(case, command)
            compared += 1
        for name in MESHES:
            if (tutorials / name).is_dir():
                compare(copied(tutorials / name, folder, "ascii", "off"), command)
                compared += 1
        # Polyhedra, and a decomposed case, which is refused by name until it is put together.
        case = copied(tutorials / BLOCKS[0], folder, "dual", "off")
        run("blockMesh", "-case", str(case))
        run("polyDualMesh", "75", "-overwrite", "-case", str(case))
        compare(case, command)
        decomposition = "numberOfSubdomains 2; method simple; simpleCoeffs { n (2 1 1); }"
        (case / "system/decomposeParDict").write_text(HEADER.format("decomposeParDict") + decomposition)
        run("decomposePar", "-case", str(case))
        shutil.rmtree(case / "constant/polyMesh")
        refused(case, command, "is a decomposed case without a whole mesh; reconstructParMesh -constant")
        refused(case / "processor1", command, "of type processor belongs to a decomposed case")
        run("reconstructParMesh", "-constant", "-case", str(case))
        compare(case, command)
    assert compared > 0
    print(f"{compared} meshes agree")


main()
