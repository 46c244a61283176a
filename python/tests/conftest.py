"""Tests run on every rank of MPI.COMM_WORLD at once; a test that fails on one rank ends the job in seconds."""

import faulthandler
import os
import sys
import time

import dnds
import pytest
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
#: Seconds that other ranks get to finish a test that failed here, before the job is ended.
PATIENCE_S = 10


def pytest_configure(config):
    if limit := os.environ.get("DNDS_TEST_TIMEOUT_S"):
        # pytest keeps what tests write to standard error, and would lose this with the process.
        errors = os.fdopen(os.dup(sys.__stderr__.fileno()), "w")
        faulthandler.dump_traceback_later(float(limit), exit=True, file=errors)
    expected = os.environ.get("DNDS_TEST_RANKS")
    if expected and int(expected) != WORLD.size:
        pytest.exit(f"started on {WORLD.size} ranks instead of {expected}: is mpi4py of another MPI than mpiexec?", 3)
    if WORLD.rank > 0:  # rank 0 prints; others only what failed
        config.option.verbose = -2
        config.option.reportchars = ""


def _all_ranks_are_here():
    request = WORLD.Ibarrier()
    end = time.monotonic() + PATIENCE_S
    while not request.Test():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed:
        print(f"\nrank {WORLD.rank}: {item.nodeid} failed\n{report.longreprtext}", file=sys.stderr, flush=True)
    if report.when == "teardown" and not _all_ranks_are_here():
        print(f"rank {WORLD.rank}: others did not come out of {item.nodeid}", file=sys.stderr, flush=True)
        faulthandler.dump_traceback()
        WORLD.Abort(1)


def pytest_sessionfinish(session, exitstatus):
    # pytest calls it a failure (5) where whole files are skipped, for lack of a package that they need.
    stats = session.config.pluginmanager.get_plugin("terminalreporter").stats
    skipped = bool(stats.get("skipped")) and not any(stats.get(kind) for kind in ("passed", "failed", "error"))
    if WORLD.allreduce(skipped, op=MPI.LAND) and int(exitstatus) in (0, 5):
        exitstatus = 0
        if WORLD.rank == 0:
            print("\nEVERY TEST WAS SKIPPED")  # by which CTest knows
    # All ranks end alike, so that a failure on any of them is the job's.
    session.exitstatus = WORLD.allreduce(int(exitstatus), op=MPI.MAX)


def is_revoked():
    try:
        return dnds.is_revoked(WORLD)
    except dnds.StateError:  # nothing uses it
        return False


@pytest.fixture
def comm():
    yield WORLD
    WORLD.Barrier()  # no rank recovers before all have come to the end
    if WORLD.allreduce(is_revoked(), op=MPI.LOR):
        dnds.recover(WORLD)


@pytest.fixture
def shared_path(tmp_path_factory):
    """A folder that all ranks see, named by rank 0."""
    return WORLD.bcast(tmp_path_factory.mktemp("shared") if WORLD.rank == 0 else None)
