"""Exchanges of several threads of each rank."""

from concurrent.futures import ThreadPoolExecutor

import dnds
import numpy as np
import pytest
from mpi4py import MPI

THREADS = 3

pytestmark = pytest.mark.skipif(MPI.Query_thread() < MPI.THREAD_MULTIPLE, reason="MPI serves one thread")


@pytest.mark.parametrize("transport", ["auto", "packed", "datatype"])
def test_each_thread_pulls_a_field_of_its_own(comm, transport):
    fields = []
    for _ in range(THREADS):
        u = dnds.Field(4, comm=comm)
        begin = 4 * comm.rank
        u.set_ghosts((np.array([begin - 1, begin + 4]) % (4 * comm.size)).tolist())
        u.prepare_pull(transport)
        fields.append(u)

    def run(k):
        u = fields[k]
        rows = u.global_rows
        for step in range(50):
            u.owned[:] = 1000 * k + 100 * step + rows[:4]
            with u.start_pull():
                temporary = dnds.Array(step % 3 + 1, 2)  # comes and goes meanwhile
            np.testing.assert_array_equal(u.ghosts, 1000 * k + 100 * step + rows[4:])
            del temporary

    with ThreadPoolExecutor(THREADS) as threads:
        for done in [threads.submit(run, k) for k in range(THREADS)]:
            done.result()
