"""meshio reads what DNDS reads: importing this adds the format "dnds" to meshio, for CGNS, Gmsh and SU2 files.

    import dnds.meshio, meshio
    mesh = meshio.read("wing.cgns", "dnds")

Without the format's name, DNDS is tried after meshio's own readers have failed. Each process reads the whole file.
"""

import collections

import meshio
import numpy as np
from mpi4py import MPI

from . import ArgumentError, Error, Mesh

_FACES = {2: "line", 3: "triangle", 4: "quad"}  # others are polygons
# meshio's names of VTK's types, whose order of nodes it has; of the wedge CGNS's, as DNDS.
_NAMES = {5: "triangle", 7: "polygon", 9: "quad", 10: "tetra", 12: "hexahedron", 13: "wedge", 14: "pyramid",
          22: "triangle6", 23: "quad8", 24: "tetra10", 25: "hexahedron20", 26: "wedge15", 27: "pyramid13", 28: "quad9",
          29: "hexahedron27", 32: "wedge18", 42: "polyhedron"}


def _blocks(rows, names):
    """meshio's blocks of the rows of each name, in the order of first appearance, and where each row went."""
    members = collections.defaultdict(list)
    for number, name in enumerate(names):
        members[name].append(number)
    places = {number: (block, at) for block, numbers in enumerate(members.values())
              for at, number in enumerate(numbers)}
    return [(name, [rows[number] for number in numbers]) for name, numbers in members.items()], places


def _faces_of(lists, cell, numbers):
    first = lists["polyhedron_offsets"][cell - 1] if cell > 0 else 0
    for face in range(first, lists["polyhedron_offsets"][cell]):
        begin = lists["face_offsets"][face - 1] if face > 0 else 0
        yield numbers[lists["face_connectivity"][begin : lists["face_offsets"][face]]]


def _cells(mesh, numbers):
    """The cells in the order of the file, by points; and their names."""
    lists = mesh._vtk_cells(mesh.cells.owned)
    begins = np.concatenate(([0], lists["offsets"][:-1])).astype(np.int64)
    rows, names = [], []
    for cell in np.argsort(mesh.cells.own_file_numbers):
        name = _NAMES[lists["types"][cell]]
        nodes = numbers[lists["connectivity"][begins[cell] : lists["offsets"][cell]]]
        polyhedron = name == "polyhedron"
        names.append(f"polyhedron{len(nodes)}" if polyhedron else name)
        rows.append(list(_faces_of(lists, cell, numbers)) if polyhedron else nodes)
    return rows, names


def of_mesh(mesh):
    """A meshio.Mesh of a mesh on one rank: cells and nodes in the order of the file, patches as `cell_sets`. Local.

    Nodes that no cell has are left out. Raises ArgumentError for a mesh on several ranks.
    """
    if mesh.comm.size != 1:
        raise ArgumentError(f"meshio's meshes are whole, and this one lies on {mesh.comm.size} ranks: read it with "
                            "MPI.COMM_SELF")
    order = np.argsort(mesh.nodes.own_file_numbers)
    numbers = np.argsort(order)  # of each local node in the result; images of periodic boundaries are not among them
    rows, names = _cells(mesh, numbers)
    patches = [patch for patch in mesh.patches if len(patch["faces"]) > 0]
    faces = np.concatenate([patch["faces"] for patch in patches] or [np.empty(0, dtype=np.int32)])
    corners = [numbers[mesh.face_nodes[face]] for face in faces]
    rows += corners
    names += [_FACES.get(len(nodes), "polygon") for nodes in corners]
    blocks, places = _blocks(rows, names)
    sets, first = {}, mesh.cells.owned
    for patch in patches:
        chosen = [[] for _ in blocks]
        for number in range(first, first + len(patch["faces"])):
            block, at = places[number]
            chosen[block].append(at)
        sets[patch["name"]] = [np.array(numbers_of, dtype=np.int64) for numbers_of in chosen]
        first += len(patch["faces"])
    return meshio.Mesh(mesh.coordinates[: mesh.nodes.owned][order], blocks, cell_sets=sets)


def read(path):
    """A meshio.Mesh of a file. Raises meshio.ReadError with the text of DNDS."""
    try:
        return of_mesh(Mesh.read(path, MPI.COMM_SELF))
    except Error as error:
        raise meshio.ReadError(str(error)) from error


meshio.register_format("dnds", [".cgns", ".msh", ".su2"], read, {})
