"""Programs that fail on one rank end, where they are started as docs/guides/python.md says. Starts its own MPI."""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import pytest

START = """
import sys
import dnds
from mpi4py import MPI
comm = MPI.COMM_WORLD
mesh = dnds.Mesh.box("triangles", (4, 4), partitioner="curve", comm=comm)
u = mesh.field(name="u")
u.pull()
path = sys.argv[1]
"""
PROGRAMS = {
    "while others write": """
        with dnds.VtkFile(mesh, path) as file:
            if comm.rank == 1:
                raise ZeroDivisionError("of rank 1")
            file.write(0, {"u": u})
        """,
    "while others pull": """
        with dnds.VtkFile(mesh, path) as file:
            if comm.rank == 0:
                raise ZeroDivisionError("of rank 0")
            u.pull()
        """,
    "while others run a plan": """
        graph = dnds.Graph("step", comm)

        @graph.task(mesh.cells, reads_writes=[u])
        def kernel(cells, u):
            if comm.rank == 1:
                raise ZeroDivisionError("of rank 1")

        graph.call(reads=[u])(lambda u: None)
        plan = graph.compile()
        while True:
            plan.run()
        """,
    "with a file that is still open": """
        file = dnds.VtkFile(mesh, path)
        if comm.rank == 1:
            raise ZeroDivisionError("of rank 1")
        file.write(0, {"u": u})
        comm.Barrier()
        """,
}


def run(tmp_path, program, module=("-m", "mpi4py")):
    source = tmp_path / "program.py"
    source.write_text(START + textwrap.dedent(program))
    launcher = [part.replace("RANKS", "2") for part in os.environ["DNDS_TEST_MPIEXEC"].split(";")]
    return subprocess.run([*launcher, sys.executable, *module, str(source), str(tmp_path / "flow.vtkhdf")],
                          capture_output=True, text=True, timeout=40)


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_exception_on_one_rank_ends_the_job(tmp_path, program):
    done = run(tmp_path, PROGRAMS[program])
    assert done.returncode != 0 and "ZeroDivisionError: of rank" in done.stderr
    assert not (tmp_path / "flow.vtkhdf").exists()


def test_a_file_that_is_never_closed_lets_the_job_end(tmp_path):
    done = run(tmp_path, """
        file = dnds.VtkFile(mesh, path)
        file.write(0, {"u": u})
        if comm.rank == 0:
            del file
        comm.Barrier()
        """, module=())
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "flow.vtkhdf").exists()
    assert done.stderr.count("flow.vtkhdf is not complete") == 1


def test_ranks_of_another_launcher_are_warned_of():
    """Each is alone then, as here, whatever its launcher says."""
    own = ("OMPI_", "PMI", "HYD", "MPI_LOCAL", "PRTE_", "SLURM_")
    alone = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    run_alone = {name: value for name, value in os.environ.items() if name.startswith("OMPI_ALLOW_RUN")}

    def said(**launcher):
        return subprocess.run([sys.executable, "-c", "import dnds"], env=alone | run_alone | launcher,
                              capture_output=True, text=True, timeout=40, check=True).stderr

    assert "4 processes were started (MV2_COMM_WORLD_SIZE=4), but MPI sees one rank" in said(MV2_COMM_WORLD_SIZE="4")
    assert said(MV2_COMM_WORLD_SIZE="4", MV2_COMM_WORLD_RANK="1") == said() == ""


def test_files_whose_packages_are_absent_are_skipped(tmp_path):
    for package in ("meshio", "vtkmodules"):
        (tmp_path / f"{package}.py").write_text(f"raise ImportError('{package} is hidden')")
    tests = pathlib.Path(__file__).parent
    launcher = [part.replace("RANKS", "2") for part in os.environ["DNDS_TEST_MPIEXEC"].split(";")]
    path = os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])
    done = subprocess.run([*launcher, sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider",
                           str(tests / "test_meshio.py"), str(tests / "test_vtk.py")],
                          env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "EVERY TEST WAS SKIPPED" in done.stdout and "needs the package meshio" in done.stdout


def test_the_doctor_is_a_module(tmp_path):
    package = pathlib.Path(importlib.util.find_spec("dnds").origin).parent
    if not (package.parents[1] / "cases").is_dir():
        pytest.skip("built without the cases, of which dnds-doctor is one")
    launcher = [part.replace("RANKS", "2") for part in os.environ["DNDS_TEST_MPIEXEC"].split(";")]
    report = tmp_path / "machine.json"
    options = ["--folder", str(tmp_path), "--megabytes", "1", "--json", str(report)]
    done = subprocess.run([*launcher, sys.executable, "-m", "dnds.doctor", *options], capture_output=True, text=True,
                          timeout=120)
    found = json.loads(report.read_text())
    assert len(found["ranks"]) == 2, "they are ranks of one job"
    assert done.returncode == found["exit_code"] == max(finding["level"] for finding in found["findings"])
    assert found["findings"][0]["what"] in done.stdout


def test_the_doctor_may_be_missing(tmp_path):
    package = pathlib.Path(importlib.util.find_spec("dnds").origin).parent
    shutil.copytree(package, tmp_path / "dnds", ignore=shutil.ignore_patterns("_core*", "bin"))
    done = subprocess.run([sys.executable, "-m", "dnds.doctor"], cwd=tmp_path, capture_output=True, text=True,
                          env={**os.environ, "PATH": "/nowhere", "PYTHONPATH": str(tmp_path)})
    assert done.returncode == 2 and "there is no dnds-doctor" in done.stderr
