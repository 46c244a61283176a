"""Reads what VtkFile and the solvers write: VTKHDF files of one unstructured mesh and fields at any number of times."""

import numpy as np

#: Corners of cells in the plane, by the number of VTK's type; 0 where all their nodes are corners.
SURFACE_CORNERS = {5: 3, 7: 0, 9: 4, 22: 3, 23: 4, 28: 4}

_TETRA = ((0, 2, 1), (0, 1, 3), (1, 2, 3), (2, 0, 3))
_PYRAMID = ((0, 3, 2, 1), (0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4))
_WEDGE = ((0, 1, 2), (3, 5, 4), (0, 3, 4, 1), (1, 4, 5, 2), (2, 5, 3, 0))
_HEXA = ((0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7))
#: Corners of the faces of volumes, by the number of VTK's type, first and second order.
VOLUME_FACES = {10: _TETRA, 24: _TETRA, 14: _PYRAMID, 27: _PYRAMID, 13: _WEDGE, 26: _WEDGE, 32: _WEDGE,
                12: _HEXA, 25: _HEXA, 29: _HEXA}
#: Corners of all cells, which are the first of their nodes; 0 where all nodes are corners.
CORNERS = SURFACE_CORNERS | {kind: 1 + max(max(face) for face in faces) for kind, faces in VOLUME_FACES.items()}


class VtkContent:
    """One time of a VTKHDF file: points [n, 3], fields by name, and polygons to draw.

    Polygon p has the nodes polygon_nodes[polygon_offsets[p]:polygon_offsets[p + 1]] and belongs to the cell
    polygon_cells[p]. Meshes of volumes are shown by the polygons of their surface.
    """

    def __init__(self, path, step=-1):
        import h5py  # only plotting needs it

        with h5py.File(path) as file:
            if "VTKHDF" not in file:
                raise ValueError(f"{path} is not a VTKHDF file")
            root = file["VTKHDF"]
            if root.attrs.get("Type") not in (b"UnstructuredGrid", "UnstructuredGrid"):
                raise ValueError(f"{path} is not a file of an unstructured mesh")
            self.points = root["Points"][:]
            self.times = root["Steps/Values"][:] if "Steps" in root else np.empty(0)
            types = root["Types"][:]
            offsets, nodes = root["Offsets"][: len(types) + 1], root["Connectivity"][:]
            self.cell_count = len(types)
            if len(self.times) and not -len(self.times) <= step < len(self.times):
                raise ValueError(f"{path} has {len(self.times)} steps: there is no step {step}")
            self.step = step % len(self.times) if len(self.times) else 0
            self.fields = {name: self._values(root, "CellData", name, len(types)) for name in root.get("CellData", ())}
            self.point_fields = {
                name: self._values(root, "PointData", name, len(self.points)) for name in root.get("PointData", ())
            }
        kinds = {int(kind) for kind in np.unique(types)}
        self.is_surface = kinds <= set(SURFACE_CORNERS)
        if not self.is_surface and not kinds <= set(VOLUME_FACES):
            raise ValueError(f"{path}: cells of VTK's types {sorted(kinds)} cannot be drawn, only surfaces, or "
                             "tetrahedra, pyramids, prisms and hexahedra")
        cells = self._cells(offsets, nodes, types)
        self.cell_nodes, self.cell_offsets, _ = cells
        polygons = cells if self.is_surface else self._surface(offsets, nodes, types)
        self.polygon_nodes, self.polygon_offsets, self.polygon_cells = polygons

    @property
    def is_flat(self):
        """Whether all lies in a plane of constant z."""
        return self.is_surface and np.ptp(self.points[:, 2]) == 0

    def corners(self):
        """The points of each polygon: a list of [corners, 3]."""
        return np.split(self.points[self.polygon_nodes], self.polygon_offsets[1:-1])

    def means(self, values):
        """The mean over the corners of each polygon of values at points: [points, ...] to [polygons, ...]."""
        return self._means(values, self.polygon_nodes, self.polygon_offsets)

    def cell_means(self, values):
        """The mean over the corners of each cell, volumes as they are: [points, ...] to [cells, ...]."""
        return self._means(values, self.cell_nodes, self.cell_offsets)

    def edges_between(self, parts):
        """The edges between polygons whose cells belong to different parts, `parts` [cells]: [edges, 2 ends, 3]."""
        following = np.arange(len(self.polygon_nodes)) + 1
        following[self.polygon_offsets[1:] - 1] = self.polygon_offsets[:-1]  # the first corner follows the last
        ends = np.sort(np.column_stack([self.polygon_nodes, self.polygon_nodes[following]]), axis=1)
        owners = np.repeat(parts[self.polygon_cells], np.diff(self.polygon_offsets))
        order = np.lexsort((ends[:, 1], ends[:, 0]))
        ends, owners = ends[order], owners[order]
        cut = (ends[1:] == ends[:-1]).all(axis=1) & (owners[1:] != owners[:-1])
        return self.points[ends[1:][cut]]

    def _values(self, root, group, name, rows):
        values = root[group][name]
        begin = 0
        if len(self.times):
            begin = int(root[f"Steps/{group}Offsets/{name}"][self.step])
        return values[begin : begin + rows]

    @staticmethod
    def _means(values, nodes, offsets):
        sums = np.add.reduceat(values[nodes], offsets[:-1], axis=0)
        return sums / np.diff(offsets).reshape(-1, *[1] * (sums.ndim - 1))

    @staticmethod
    def _cells(offsets, nodes, types):
        """Cells by their corners, without nodes in the middle of edges."""
        corners = np.zeros(max(CORNERS) + 1, dtype=np.int64)
        corners[list(CORNERS)] = list(CORNERS.values())
        counts = corners[types]
        counts = np.where(counts == 0, np.diff(offsets), counts)
        polygon_offsets = np.concatenate([[0], np.cumsum(counts)])
        places = np.arange(polygon_offsets[-1]) + np.repeat(offsets[:-1] - polygon_offsets[:-1], counts)
        return nodes[places], polygon_offsets, np.arange(len(types))

    @staticmethod
    def _surface(offsets, nodes, types):
        """The faces of volumes that only one cell has."""
        faces, cells = [], []  # faces padded to four nodes
        for kind in np.unique(types):
            of_kind = np.flatnonzero(types == kind)
            for corners in VOLUME_FACES[int(kind)]:
                face = np.full((len(of_kind), 4), -1, dtype=np.int64)
                face[:, : len(corners)] = nodes[offsets[of_kind][:, None] + np.array(corners)]
                faces.append(face)
                cells.append(of_kind)
        faces, cells = np.concatenate(faces), np.concatenate(cells)
        _, first, times = np.unique(np.sort(faces, axis=1), axis=0, return_index=True, return_counts=True)
        alone = np.sort(first[times == 1])
        faces, cells = faces[alone], cells[alone]
        counts = (faces >= 0).sum(axis=1)
        return faces[faces >= 0], np.concatenate([[0], np.cumsum(counts)]), cells
