"""One rank fails while the others are in running calls: all get its rank and message, and continue with right bits.

The matrix of Python: running calls x faults x failing ranks. That of C++ begins at test/DNDS/Mpi/Survival.hpp.
"""

import os
import sys
import time

import dnds
import numpy as np
import pytest
from memory import under_sanitizer

#: Seconds within which every rank is told, as in Survival.hpp.
MOST_S = float(os.environ.get("DNDS_TEST_PATIENCE", "5"))
ROWS = 4  #: of each rank


class Unusual(Exception):
    pass


class Ring:
    """A field of which each rank copies the row before its own and the one after them; `run` pulls it."""

    def __init__(self, comm):
        self.comm = comm
        self.u = self.field("u")
        self.u.set_ghosts((np.array([-1, ROWS]) + ROWS * comm.rank) % (ROWS * comm.size))

    def field(self, name):
        return dnds.Field(ROWS, comm=self.comm, name=name)

    def run(self):
        self.u.pull()

    def expect_right(self, version):
        self.u.owned[:] = 100 * version + self.u.global_rows[:ROWS]
        self.run()
        np.testing.assert_array_equal(self.u.data, 100 * version + self.u.global_rows)

    def misuse(self):
        """What no rank may do."""
        self.flight = self.u.start_pull()
        self.u.start_pull()


class Flight(Ring):
    def run(self):
        with self.u.start_pull():
            pass


class Push(Ring):
    def run(self):
        self.u.push("sum")

    def expect_right(self, version):
        self.u.owned[:] = 100 * version
        self.u.ghosts[:] = self.comm.rank + 1
        self.run()
        expected = np.full(ROWS, 100.0 * version)
        expected[0] += (self.comm.rank - 1) % self.comm.size + 1
        expected[-1] += (self.comm.rank + 1) % self.comm.size + 1
        np.testing.assert_array_equal(self.u.owned, expected)

    def misuse(self):
        self.flight = self.u.start_push("sum")
        self.u.start_push("sum")


class Group(Ring):
    def __init__(self, comm):
        super().__init__(comm)
        self.v = self.field("v")
        self.v.share_ghosts(self.u)
        self.group = dnds.FieldGroup([self.u, self.v])

    def run(self):
        self.group.pull()

    def misuse(self):
        self.flight = self.group.start_pull()
        self.group.start_pull()


class Blocks:
    def __init__(self, comm):
        self.comm, self.a = comm, dnds.NdArray("a")
        self.a.decompose((8 * comm.size,), ghosts=1, periodic=(True,), comm=comm)

    def run(self):
        self.a.exchange_ghosts()

    def expect_right(self, version):
        cells = 8 * self.comm.rank + np.arange(-1, 9)
        self.a.core[:] = 100 * version + cells[1:-1]
        self.run()
        np.testing.assert_array_equal(self.a.extent, 100 * version + cells % (8 * self.comm.size))

    misuse = None


class Sparse:
    """Block k of a line is there where something was put, and its neighbour that something comes to."""

    def __init__(self, comm):
        grid = dnds.BlockGrid.blocks_of((8 * comm.size,), (8,), periodic=(True,), comm=comm)
        self.comm, self.u = comm, grid.sparse_field("dust")
        for b in range(len(self.u)):
            self.u.allocate(b)

    def run(self):
        self.u.exchange_ghosts()

    def expect_right(self, version):
        for b in range(len(self.u)):
            self.u.allocate(b)
            first = self.u.box(b)[0][0]
            self.u.view(b)[:] = 100 * version + np.arange(first, first + 8)
        self.run()
        for b in range(len(self.u)):
            first = self.u.box(b)[0][0]
            rows = np.arange(first - 1, first + 9) % (8 * self.comm.size)
            np.testing.assert_array_equal(self.u.view(b, ghosts=True), 100 * version + rows)

    misuse = None


class Plan(Ring):
    """Differences of neighbours, which are added; the kernel named by `raises` raises."""

    def __init__(self, comm):
        super().__init__(comm)
        self.raises = ""
        self.v = self.field("v")
        self.v.share_ghosts(self.u)
        own = ROWS * comm.rank + np.arange(ROWS)
        sides = np.stack([self.u.to_local((own + by) % (ROWS * comm.size)) for by in (-1, 1)], axis=1)
        graph = dnds.Graph("step", comm)

        @graph.task(self.u, reads=[self.u.through(sides)], writes=[self.v])
        def difference(rows, u, v):
            self.check("difference")
            v[rows] = u[sides[rows, 1]] - u[sides[rows, 0]]

        @graph.task(self.u, reads=[self.v], reads_writes=[self.u])
        def update(rows, v, u):
            self.check("update")
            u[rows] += v[rows]

        @graph.call(reads=[self.u])
        def look(u):
            self.check("look")

        self.plan = graph.compile()

    def check(self, name):
        if self.raises == name:
            raise Unusual(f"in {name}")

    def run(self):
        self.plan.run()

    def expect_right(self, version):
        rows = np.arange(ROWS * self.comm.size, dtype=float)
        u = 100 * version + rows**2
        own = slice(ROWS * self.comm.rank, ROWS * (self.comm.rank + 1))
        self.u.owned[:] = u[own]
        for _ in range(2):
            self.run()
            u += np.roll(u, -1) - np.roll(u, 1)
            np.testing.assert_array_equal(self.u.owned, u[own])

    def raising(self, name):
        self.raises = name
        with pytest.raises(Unusual) as caught:
            self.run()
        if sys.version_info >= (3, 11):
            assert caught.value.__notes__[0].startswith(f"in task '{name}'")
        self.raises = ""

    misuse = None


def of_the_program(call):
    dnds.revoke(call.comm, "negative pressure")
    with pytest.raises(dnds.RevokedError, match="negative pressure"):
        call.run()


def late(call):
    time.sleep(0.15)  # the others look around by then
    of_the_program(call)


def misuse(call):
    with pytest.raises(dnds.StateError, match="already started"):
        call.misuse()


FAULTS = {"program": (of_the_program, "negative pressure"), "late": (late, "negative pressure"),
          "misuse": (misuse, "already started"),
          **{name: (lambda call, name=name: call.raising(name), f"Unusual: in {name}")
             for name in ("difference", "update", "look")}}
CELLS = [(call, fault) for call in (Ring, Flight, Push, Group, Blocks, Sparse, Plan) for fault in FAULTS
         if fault in ("program", "late") or (fault == "misuse" and call.misuse) or (fault != "misuse" and call is Plan)]


def fail_and_recover(comm, it, fault, failing):
    comm.Barrier()  # no rank fails before all ranks are here
    begin = time.monotonic()
    fail, told = FAULTS[fault]
    if comm.size == 1:  # an error is nothing but an error
        fail(it)
    elif comm.rank == failing:
        fail(it)
        with pytest.raises(dnds.RevokedError, match="this rank failed in"):
            it.run()
    else:
        with pytest.raises(dnds.RevokedError, match=rf"(?s)rank {failing} failed in .*{told}.*recover"):
            while True:  # a call may be through before that
                it.run()
    assert time.monotonic() - begin < MOST_S
    assert dnds.is_revoked(comm) == (comm.size > 1)
    comm.Barrier()
    it.plan.recover() if isinstance(it, Plan) and failing == 0 else dnds.recover(comm)
    assert not dnds.is_revoked(comm)


@pytest.mark.parametrize(("call", "fault"), CELLS)
def test_all_ranks_are_told_and_go_on(comm, call, fault):
    if comm.size == 1 and fault in ("program", "late", "misuse"):
        pytest.skip("needs a peer")
    it = call(comm)
    it.expect_right(1)
    for failing in {0, comm.size - 1}:
        fail_and_recover(comm, it, fault, failing)
        for version in (2, 3):
            it.expect_right(version)


def resident_bytes():
    with open("/proc/self/statm") as numbers:
        return int(numbers.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(under_sanitizer, reason="which keeps what is freed")
def test_failures_leave_no_memory(comm):
    if comm.size == 1:
        pytest.skip("needs a peer")
    calls = [call(comm) for call in (Ring, Push, Plan)]
    for round in range(60):
        if round == 20:  # libraries have made their lazy allocations
            before = resident_bytes()
        fail_and_recover(comm, calls[round % 3], "program", round % comm.size)
    assert resident_bytes() < before + 6 * 2**20
