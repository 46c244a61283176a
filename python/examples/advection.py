"""A blob is advected through a periodic box: a finite-volume solver on any mesh, in vectorised NumPy.

mpiexec -n 4 python3 advection.py [MESH] [--steps N] [--output FILE.vtkhdf]
"""

import argparse

import dnds
import numpy as np
from mpi4py import MPI


class Upwind:
    """First-order upwind fluxes of a constant velocity. Nothing passes through the boundary."""

    def __init__(self, mesh, velocity):
        metrics = mesh.metrics()
        self.mesh = mesh
        self.volumes = metrics.volumes[: mesh.cells.owned]
        closed = (mesh.face_cells < 0).any(axis=1, keepdims=True)
        self.sides = np.where(closed, mesh.face_cells[:, :1], mesh.face_cells)
        self.speed = np.where(closed[:, 0], 0, metrics.area_vectors @ velocity)

    def largest_step(self):
        """The time in which the first cell would be emptied, over all ranks."""
        cell, faces = self.mesh.cell_faces.pairs(range(self.mesh.cells.owned))
        leaving = np.where(self.mesh.face_cells[faces, 0] == cell, self.speed[faces], -self.speed[faces])
        out = np.bincount(cell, np.maximum(leaving, 0), self.mesh.cells.owned)
        mine = self.volumes / np.maximum(out, 1e-300)
        return self.mesh.comm.allreduce(mine.min(initial=np.inf), MPI.MIN)

    def plan(self, u, step):
        """What moves `u` on by a time `step`."""
        mesh = self.mesh
        flow = dnds.Field(len(mesh.faces), name="flow", comm=mesh.comm)
        graph = dnds.Graph("advection", mesh.comm)

        @graph.task(mesh.faces, reads=[u.through(mesh.face_cells)], writes=[flow])
        def flows(faces, u, flow):
            first, second = self.sides[faces].T
            speed = self.speed[faces]
            flow[faces] = np.where(speed > 0, u[first], u[second]) * speed

        @graph.task(mesh.cells, reads=[flow.through(mesh.cell_faces)], reads_writes=[u])
        def update(cells, flow, u):
            place, faces = mesh.cell_faces.pairs(cells)
            leaving = np.where(mesh.face_cells[faces, 0] == cells[place], flow[faces], -flow[faces])
            u[cells] -= step / self.volumes[cells] * np.bincount(place, leaving, len(cells))

        return graph.compile()


def advect(mesh, steps, velocity=(1.0, 0.5, 0.0), writer=None):
    """The field and its mass before and after, for so many steps at 0.9 of the largest."""
    scheme = Upwind(mesh, np.array(velocity))
    u = mesh.field(name="u")
    away = mesh.metrics().centroids[: mesh.cells.owned, :2] - [0.35, 0.4]
    u.owned[:] = np.exp(-40 * (away**2).sum(axis=1))
    mass = mesh.field(name="mass")
    masses = []
    step = 0.9 * scheme.largest_step()
    plan = scheme.plan(u, step)
    for count in range(steps + 1):
        mass.owned[:] = u.owned * scheme.volumes
        if count in (0, steps):
            masses.append(mass.exact_sum())
        if writer and count % 10 == 0:
            writer.write(count * step, {"u": u})
        if count == steps:
            break
        plan.run()
    return u, masses


def main():
    parser = argparse.ArgumentParser(description="Advects a blob through a mesh.")
    parser.add_argument("mesh", nargs="?", help="a CGNS, Gmsh or SU2 file (default: a periodic box of triangles)")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--output", help="a VTKHDF file to write")
    options = parser.parse_args()
    if options.mesh:
        mesh = dnds.Mesh.read(options.mesh)
    else:
        mesh = dnds.Mesh.box("triangles", (40, 40), jitter=0.1, shuffled=True, periodic=(True, True))

    if options.output:
        with dnds.VtkFile(mesh, options.output, ranks=True) as writer:
            u, masses = advect(mesh, options.steps, writer=writer)
    else:
        u, masses = advect(mesh, options.steps)
    largest = u.max()
    if mesh.comm.rank == 0:
        before, after = masses
        ranks = mesh.comm.size
        print(f"{mesh.cells.global_count} cells on {ranks} ranks: mass {before:.6f}, then {after:.6f}; {largest=:.4f}")


if __name__ == "__main__":
    main()
