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
        self.owned = mesh.cells.owned
        self.volumes = metrics.volumes[: self.owned]
        own = (mesh.face_cells >= 0) & (mesh.face_cells < self.owned)
        faces = own.any(axis=1) & (mesh.face_cells >= 0).all(axis=1)
        # Faces between own cells need no ghosts: they are computed during the pull.
        self.inner = self.selected(mesh, metrics, velocity, faces & own.all(axis=1))
        self.outer = self.selected(mesh, metrics, velocity, faces & ~own.all(axis=1))

    @staticmethod
    def selected(mesh, metrics, velocity, faces):
        first, second = mesh.face_cells[faces].T
        return first, second, metrics.area_vectors[faces] @ velocity

    def gain(self, u, faces):
        """The flow into each own cell through faces: [owned]."""
        first, second, speed = faces
        flow = np.where(speed > 0, u[first], u[second]) * speed
        cells = max(self.owned, len(u))
        return (np.bincount(second, flow, cells) - np.bincount(first, flow, cells))[: self.owned]

    def largest_step(self, u):
        """The time in which the first cell would be emptied, over all ranks."""
        out = np.zeros(len(u))
        for first, second, speed in (self.inner, self.outer):
            out += np.bincount(first, np.maximum(speed, 0), len(u)) + np.bincount(second, np.maximum(-speed, 0), len(u))
        mine = self.volumes / np.maximum(out[: self.owned], 1e-300)
        return u.comm.allreduce(mine.min(initial=np.inf), MPI.MIN)


def advect(mesh, steps, velocity=(1.0, 0.5, 0.0), writer=None):
    """The field and its mass before and after, for so many steps at 0.9 of the largest."""
    scheme = Upwind(mesh, np.array(velocity))
    u = mesh.field(name="u")
    away = mesh.metrics().centroids[: mesh.cells.owned, :2] - [0.35, 0.4]
    u.owned[:] = np.exp(-40 * (away**2).sum(axis=1))
    mass = mesh.field(name="mass")
    masses = []
    step = 0.9 * scheme.largest_step(u)
    for count in range(steps + 1):
        mass.owned[:] = u.owned * scheme.volumes
        if count in (0, steps):
            masses.append(mass.exact_sum())
        if writer and count % 10 == 0:
            writer.write(count * step, {"u": u})
        if count == steps:
            break
        with u.start_pull():  # meanwhile: fluxes between own cells
            gain = scheme.gain(u.owned, scheme.inner)
        gain += scheme.gain(u.data, scheme.outer)
        u.owned[:] += step * gain / scheme.volumes
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
