"""Work that differs from cell to cell is spread over the ranks: mpiexec -n 3 python3 balance.py"""

import dnds
import numpy as np
from mpi4py import MPI


def work_of(mesh):
    """What own cells cost: twenty times as much in the first fifth of the box."""
    x = mesh.metrics().centroids[: mesh.cells.owned, 0]
    return np.where(x < 0.2, 20, 1)


def imbalance(mesh):
    """The work of the busiest rank over the mean."""
    mine = work_of(mesh).sum()
    return mesh.comm.allreduce(mine, MPI.MAX) / mesh.comm.allreduce(mine, MPI.SUM) * mesh.comm.size


def balanced(mesh, fields):
    """The mesh on another partition if that pays, and the fields on it."""
    if imbalance(mesh) < 1.1:
        return mesh, fields
    return mesh.repartition(weights=work_of(mesh), fields=fields)


if __name__ == "__main__":
    mesh = dnds.Mesh.box("quadrilaterals", (60, 40))
    u = mesh.field(name="u")
    u.owned[:] = mesh.metrics().centroids[: mesh.cells.owned, 0]
    before, total = imbalance(mesh), u.exact_sum()
    mesh, (u,) = balanced(mesh, [u])
    after, same = imbalance(mesh), u.exact_sum() == total
    if MPI.COMM_WORLD.rank == 0:
        print(f"{mesh.cells.global_count} cells: {before:.1f} times the mean work, then {after:.1f}; same sum: {same}")
