import importlib.util
import pathlib

import dnds
import numpy as np
import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("fill", ["triangles", "quadrilaterals", "mixed-surface"])
def test_advection_keeps_mass_and_order(comm, fill):
    advection = example("advection")
    periodic = (fill != "mixed-surface", True)
    mesh = dnds.Mesh.box(fill, (16, 16), jitter=0.1, shuffled=True, periodic=periodic, partitioner="curve", comm=comm)
    u, (before, after) = advection.advect(mesh, 40, velocity=(1.0 if periodic[0] else 0.0, 0.5, 0.0))
    assert np.isclose(before, after, rtol=1e-13) and before > 0.07
    assert 0 <= u.min() and u.max() <= 1, "upwind fluxes make no new extremes"
    # The same on one rank, cell by cell of the file.
    alone = comm.Split(comm.rank, 0)
    serial = dnds.Mesh.box(fill, (16, 16), jitter=0.1, shuffled=True, periodic=periodic, partitioner="curve",
                           comm=alone)
    expected, masses = advection.advect(serial, 40, velocity=(1.0 if periodic[0] else 0.0, 0.5, 0.0))
    of_file = np.empty(serial.cells.owned)
    of_file[serial.cells.file_numbers[: serial.cells.owned]] = expected.owned
    np.testing.assert_allclose(u.owned, of_file[mesh.cells.file_numbers[: mesh.cells.owned]], atol=1e-13)
    assert masses[0] == before, "exact sums do not depend on the number of ranks"
    alone.Free()


def test_a_blob_moves_with_its_velocity(comm):
    advection = example("advection")
    mesh = dnds.Mesh.box("quadrilaterals", (32, 32), periodic=(True, True), partitioner="curve", comm=comm)
    scheme = advection.Upwind(mesh, np.array([1.0, 0.0, 0.0]))
    u, _ = advection.advect(mesh, 10, velocity=(1.0, 0.0, 0.0))
    time = 10 * 0.9 * scheme.largest_step()
    x, volume = mesh.metrics().centroids[: mesh.cells.owned, 0], scheme.volumes
    angle = comm.allreduce((u.owned * volume * np.exp(2j * np.pi * x)).sum())
    assert np.isclose(np.angle(angle) / (2 * np.pi) % 1, (0.35 + time) % 1, atol=5e-3)
