"""Implicit steps of heat on a ring, solved by PETSc without a matrix: mpiexec -n 3 python3 implicit.py"""

import dnds
import numpy as np
from dnds import petsc
from mpi4py import MPI
from petsc4py import PETSc


class Step:
    """y = x - k (left - 2 x + right). Ghosts are pulled by DNDS."""

    def __init__(self, comm, cells, k):
        self.k, self.cells = k, cells
        self.d = dnds.Field(cells, comm=comm, name="direction")
        rows = cells * comm.rank + np.arange(cells)
        self.left, self.right = self.d.ghosts_for(np.array([rows - 1, rows + 1]) % (cells * comm.size))

    def mult(self, matrix, x, y):
        self.d.owned[:] = x.array_r
        self.d.pull()
        d = self.d.data
        y.array = (1 + 2 * self.k) * d[: self.cells] - self.k * (d[self.left] + d[self.right])


def spread(comm, cells=4, steps=10):
    """Heat of one hot cell after some steps, as a field."""
    heat, before = dnds.Field(cells, comm=comm, name="heat"), dnds.Field(cells, comm=comm, name="before")
    if comm.rank == 0:
        heat.owned[0] = 1
    matrix = PETSc.Mat().createPython([(cells, None), (cells, None)], Step(comm, cells, 2.0), comm=comm)
    matrix.setUp()
    x, b = petsc.vec(heat), petsc.vec(before)  # no copies
    solver = PETSc.KSP().create(comm)
    solver.setOperators(matrix)
    solver.setType("cg")
    solver.setTolerances(rtol=1e-12)
    solver.setFromOptions()
    for _ in range(steps):
        before.owned[:] = heat.owned
        solver.solve(b, x)
    for made in (solver, matrix, x, b):
        made.destroy()
    return heat


if __name__ == "__main__":
    heat = spread(MPI.COMM_WORLD)
    total, hottest = heat.sum(), heat.max()
    if MPI.COMM_WORLD.rank == 0:
        print(f"sum {total:.6f}, hottest {hottest:.6f}")
