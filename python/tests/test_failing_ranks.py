"""What goes wrong on one rank alone is raised on all, and leaves no rank waiting."""

import threading
import time

import dnds
import numpy as np
import pytest


def box(comm, **options):
    return dnds.Mesh.box("triangles", (4, 4), comm=comm, **{"partitioner": "curve"} | options)


def ring(comm, **options):
    """A field of which each rank copies a row of the previous rank and one of the next."""
    u = dnds.Field(3, comm=comm, **options)
    begin = 3 * comm.rank
    u.set_ghosts((np.array([begin - 1, begin + 3]) % (3 * comm.size)).tolist())
    return u


def test_wrong_arguments_of_one_rank_raise_on_all(comm, shared_path):
    last = comm.rank == comm.size - 1
    mesh = box(comm)
    u = mesh.field(name="u")
    ids = mesh.cells.file_numbers[: mesh.cells.owned]
    checkpoint = shared_path / "run.h5"
    dnds.write_checkpoint(checkpoint, {"u": u}, ids, comm=comm)
    v = ring(comm)
    w = ring(comm)
    w.pull()
    rows = 100 * comm.rank + np.arange(len(w.owned))  # of no mesh that would know them

    def pick(wrong, right):
        return wrong if last else right

    calls = {
        "read": (lambda: dnds.SourceMesh.read(pick(7, "mesh.cgns"), comm), "path"),
        "box": (lambda: dnds.Mesh.box("triangles", pick((2,), (4, 4)), comm=comm), "two or three directions"),
        "box words": (lambda: dnds.Mesh.box("triangles", pick("xy", (4, 4)), comm=comm), None),
        "vtk path": (lambda: dnds.VtkFile(mesh, pick(None, shared_path / "a.vtkhdf")), "path"),
        "cgns path": (lambda: mesh.write_cgns(pick(3.5, shared_path / "a.cgns")), "path"),
        "cgns type": (lambda: mesh.write_cgns(shared_path / "a.cgns", file_type=pick("hdf4", "adf")), "hdf5 or adf"),
        "cgns fields": (lambda: mesh.write_cgns(shared_path / "a.cgns", pick([u], {"u": u})), "dict"),
        "partitioner": (lambda: mesh.partition(3, partitioner=pick("metis", "curve")), "graph or curve"),
        "ghosts": (lambda: mesh.partition_report(np.zeros(mesh.cells.owned, int), 1,
                                                 ghosts_by=pick("edges", "faces")), "nodes or faces"),
        "field at": (lambda: mesh.field(at=pick("corners", "cells")), "cells, nodes, faces or edges"),
        "field type": (lambda: mesh.field(dtype=pick("complex64", "int8")), "complex64"),
        "layout": (lambda: dnds.Field(2, 1, layout=pick("rows", "fixed"), comm=comm), "fixed, padded or csr"),
        "dtype": (lambda: dnds.Field(2, dtype=pick("no such type", "int8"), comm=comm), None),
        "width": (lambda: dnds.Field(2, pick("two", 2), comm=comm), "32-bit integer"),
        "first push": (lambda: v.push(pick("multiply", "sum")), "replace, sum, min or max"),
        "transport": (lambda: v.prepare_pull(pick("pigeon", "packed")), "pigeon"),
        "checkpoint path": (lambda: dnds.write_checkpoint(pick(1, checkpoint), {"u": u}, ids, comm=comm), "path"),
        "checkpoint ids": (lambda: dnds.write_checkpoint(checkpoint, {"w": w}, pick({}, {"w": rows}), comm=comm), "w"),
        "reading": (lambda: dnds.Checkpoint(pick(1, checkpoint), comm), "path"),
        "reading into": (lambda: dnds.Checkpoint(checkpoint, comm).read("u", pick("u", u), ids), None),
    }
    for name, (call, text) in calls.items():
        with pytest.raises((dnds.Error, TypeError, KeyError, RuntimeError), match=text) as caught:
            call()
        assert last or isinstance(caught.value, dnds.Error), name
    # No rank is out of step.
    v.push()
    u.pull()
    assert dnds.Checkpoint(checkpoint, comm).arrays.keys() == {"u"}


def test_progress_that_raises_on_one_rank_raises_on_all(comm):
    seen = []

    def stop(step):
        seen.append(step)
        if comm.rank == 0 and step == "faces":
            raise ZeroDivisionError("enough")

    with pytest.raises(ZeroDivisionError if comm.rank == 0 else dnds.StateError, match="enough"):
        box(comm, progress=stop)
    assert (seen[-1] == "faces") == (comm.rank == 0), "there are no more calls where it raised, and all elsewhere"
    told = []
    mesh = box(comm, progress=told.append if comm.rank == 0 else None)  # as programs that print do
    assert mesh.cells.global_count == 32 and bool(told) == (comm.rank == 0)


def test_a_source_that_was_used_up_says_so(comm):
    source = dnds.SourceMesh.box("triangles", (4, 4), comm=comm)
    dnds.Mesh.build(source, partitioner="curve")
    for name in ("origin", "dimension", "cell_count", "node_count", "coordinates", "patches", "warnings"):
        with pytest.raises(dnds.StateError, match="used up"):
            getattr(source, name)


def test_views_of_a_source_outlive_it(comm):
    source = dnds.SourceMesh.box("hexahedra", (6, 6, 6), comm=comm)
    points = source.coordinates
    points[:, 0] *= 2
    before = points.copy()
    mesh = dnds.Mesh.build(source, partitioner="curve")
    assert np.isclose(mesh.report["volume"], 2), "what was written through the view is built"
    np.testing.assert_array_equal(points, before)
    points[:] = -7  # into memory that still exists and has no other user
    del source
    assert (points == -7).all() and mesh.coordinates.min() >= 0
    assert box(comm).report["volume"] > 0


def test_an_exception_on_one_rank_leaves_a_file_block(comm, shared_path):
    """The others wait for a word of the rank that fails, or are at the end of the block already."""
    mesh = box(comm)
    path = shared_path / "never.vtkhdf"
    if comm.rank == 0:
        with pytest.raises(ZeroDivisionError), dnds.VtkFile(mesh, path) as file:
            raise ZeroDivisionError
        for rank in range(1, comm.size, 2):
            comm.send("go on", rank)
    else:
        with pytest.raises(dnds.PeerError, match="never.vtkhdf is not complete"), dnds.VtkFile(mesh, path) as file:
            if comm.rank % 2 == 1:
                comm.recv(source=0)
    with pytest.raises(dnds.StateError, match="closed"):
        file.write()
    assert comm.allreduce(path.exists()) == 0
    # All that need not wait for others is as before.
    u = mesh.field()
    with dnds.VtkFile(mesh, shared_path / "other.vtkhdf") as file:
        file.write(0, {"u": u})
    assert (shared_path / "other.vtkhdf").exists()


def test_ranks_that_all_fail_close_the_file(comm, shared_path):
    mesh = box(comm)
    path = shared_path / "again.vtkhdf"
    for _ in range(2):  # HDF5 refuses to open what is open
        with pytest.raises(ZeroDivisionError), dnds.VtkFile(mesh, path):
            raise ZeroDivisionError
        with pytest.raises(dnds.StateError, match="closed"), dnds.VtkFile(mesh, path) as file:
            file.close()
            file.close()
    assert path.exists()


@pytest.fixture
def marks(shared_path):
    return shared_path / "here"


@pytest.mark.parametrize("what", ["field", "bad field", "set_ghosts", "describe_pull", "pull_paths", "component_norm2",
                                  "checkpoint", "own_block", "read_source"])
def test_other_threads_run_while_ranks_wait(comm, shared_path, marks, what):
    """The last rank comes when a thread of the others, which wait for it in C++, has left a mark."""
    u, path = ring(comm), shared_path / "run.h5"
    dnds.write_checkpoint(path, {"u": u}, 3 * comm.rank + np.arange(3), comm=comm)
    file = dnds.Checkpoint(path, comm)

    def bad():
        with pytest.raises(dnds.ArgumentError):
            dnds.Field(2, -1, comm=comm)

    def missing():
        with pytest.raises(dnds.DataError):
            dnds.SourceMesh.read(shared_path / "missing.cgns", comm)

    call = {"field": lambda: dnds.Field(2, comm=comm), "bad field": bad, "set_ghosts": lambda: u.set_ghosts([]),
            "describe_pull": u.describe_pull, "pull_paths": u.pull_paths, "component_norm2": u.component_norm2,
            "checkpoint": lambda: dnds.Checkpoint(path, comm), "own_block": lambda: file.own_block("u"),
            "read_source": missing}[what]
    if comm.rank == comm.size - 1:
        end = time.monotonic() + 5
        expected = [marks.with_name(f"here-{rank}") for rank in range(comm.size - 1)]
        while not all(mark.exists() for mark in expected) and time.monotonic() < end:
            time.sleep(0.01)
        came = all(mark.exists() for mark in expected)
        call()
        assert came, "threads of ranks that wait stand still"
    else:
        mark = threading.Timer(0.1, marks.with_name(f"here-{comm.rank}").touch)
        mark.start()
        call()
        mark.join()
