import gc
import importlib.util
import pathlib

import dnds
import numpy as np
import pytest


@pytest.fixture
def PETSc():  # noqa: N802
    """Tests are skipped one by one, so that the run says so."""
    made = pytest.importorskip("petsc4py.PETSc", reason="needs the package petsc4py (Debian: python3-petsc4py)")
    if made.ScalarType != np.float64:
        pytest.skip("needs a PETSc of real double numbers")
    return made


@pytest.mark.parametrize("width", [None, 1, 3])
def test_vectors_share_the_memory_of_owned_rows(comm, PETSc, width):
    from dnds import petsc

    u = dnds.Field(comm.rank * 2, width=width, comm=comm, name="u")  # rank 0 has none
    u.owned[:] = comm.rank + 1
    x = petsc.vec(u)
    assert x.getBlockSize() == (width or 1) and x.getSizes() == (u.owned.size, comm.allreduce(u.owned.size))
    assert u.owned.size == 0 or np.shares_memory(x.array_r, u.owned)
    assert np.isclose(x.norm(), np.sqrt(comm.allreduce((u.owned**2).sum())))
    x.scale(2)
    assert (u.owned == 2 * (comm.rank + 1)).all()
    u.owned[:] = 7
    del u
    gc.collect()
    assert x.sum() == 7 * x.getSize(), "it keeps the memory"
    x.destroy()


def test_other_numbers_are_refused(comm, PETSc):
    from dnds import petsc

    with pytest.raises(dnds.ArgumentError, match="'n' has elements of int32"):
        petsc.vec(dnds.Field(3, dtype="int32", comm=comm, name="n"))


def test_what_is_wrong_on_one_rank_raises_on_all(comm, PETSc):
    from dnds import petsc

    last = comm.rank == comm.size - 1
    u = dnds.Field(3, width=2, comm=comm, name="u")
    text = "a dnds.Field, not of NoneType"
    with pytest.raises(dnds.ArgumentError, match=text if last else rf"rank {comm.size - 1} cannot .*{text}"):
        petsc.vec(None if last else u, comm=comm)
    if comm.size > 1:
        with pytest.raises(dnds.ArgumentError, match="2 to 3 on all ranks"):
            petsc.vec(dnds.Field(3, width=2 if last else 3, comm=comm, name="u"))
    petsc.vec(u).destroy()


def test_implicit_steps_on_a_ring(comm, PETSc):
    path = pathlib.Path(__file__).resolve().parents[1] / "examples/implicit.py"
    spec = importlib.util.spec_from_file_location("implicit", path)
    implicit = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(implicit)
    heat = implicit.spread(comm, cells=5, steps=4)
    count = 5 * comm.size
    around = np.roll(np.eye(count), 1, axis=0)
    step = np.linalg.inv(5 * np.eye(count) - 2 * (around + around.T))
    expected = np.linalg.matrix_power(step, 4)[:, 0]
    np.testing.assert_allclose(heat.owned, expected[5 * comm.rank : 5 * comm.rank + 5], atol=1e-9)
