"""Heat spreads on a ring of cells, four on each rank: mpiexec -n 3 python3 ring.py"""

import dnds
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
heat = dnds.Field(4, comm=comm, name="heat")
if comm.rank == 0:
    heat.owned[0] = 1

# The global rows that each of ours reads. Rows of other ranks become ghosts: rows after our own four.
rows = 4 * comm.rank + np.arange(4)
left, right = heat.ghosts_for(np.array([rows - 1, rows + 1]) % (4 * comm.size))

for _ in range(100):
    heat.pull()
    u = heat.data  # owned rows, then ghosts: no copy
    heat.owned[:] = 0.25 * u[left] + 0.5 * u[:4] + 0.25 * u[right]

total, hottest = heat.sum(), heat.max()
if comm.rank == 0:
    print(f"{4 * comm.size} rows on {comm.size} ranks: sum {total:.6f}, hottest {hottest:.6f}")
