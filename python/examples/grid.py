"""A warm spot spreads on a map that is cut over the ranks: mpiexec -n 3 python3 grid.py"""

import dnds
import numpy as np
from mpi4py import MPI

t = dnds.NdArray("t")
t.decompose((24, 48), ghosts=1, periodic=(False, True), dims=("latitude", "longitude"))
t.coords = {"latitude": np.linspace(86.25, -86.25, 24), "longitude": np.arange(48) * 7.5}
lat, lon = np.meshgrid(*t.local_coords.values(), indexing="ij")
t.core = np.exp(-((lat - 20) ** 2 + (lon - 180) ** 2) / 900)  # this rank's cells: a view, not a copy

for _ in range(100):
    t.exchange_ghosts()
    u = t.extent  # cells and ghosts: a view, too
    if t.core.size:  # ranks may have no cells
        t.core += 0.2 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])

hottest = t.comm.allreduce(t.core.max(initial=0), op=MPI.MAX)
if t.comm.rank == 0:
    print(f"{t.global_shape} cells in {len(t.grid.blocks)} parts, hottest {hottest:.6f}")
