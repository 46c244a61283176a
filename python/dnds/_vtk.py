"""Reads what VtkFile writes: VTKHDF files of one unstructured mesh and fields at any number of times."""

import numpy as np

#: Corners of cells in the plane, by the number of VTK's type.
SURFACE_CORNERS = {5: 3, 7: None, 9: 4, 22: 3, 23: 4, 28: 4}


class VtkContent:
    """One time of a VTKHDF file: points [n, 3], polygons to draw, and fields by name.

    Meshes of volumes are shown by the polygons of their surface.
    """

    def __init__(self, path, step=-1):
        import h5py  # only those who plot need it

        with h5py.File(path) as file:
            root = file["VTKHDF"]
            self.points = root["Points"][:]
            self.times = root["Steps/Values"][:] if "Steps" in root else np.empty(0)
            offsets, nodes = root["Offsets"][:], root["Connectivity"][:]
            types = root["Types"][:]
            self.cell_count = len(types)
            self.step = step % len(self.times) if len(self.times) else 0
            if len(self.times) and not -len(self.times) <= step < len(self.times):
                raise ValueError(f"{path} has {len(self.times)} steps: there is no step {step}")
            self.fields = {name: self._values(root, "CellData", name, len(types)) for name in root.get("CellData", ())}
            self.point_fields = {
                name: self._values(root, "PointData", name, len(self.points)) for name in root.get("PointData", ())
            }
        self.is_surface = all(int(kind) in SURFACE_CORNERS for kind in np.unique(types))
        self.polygons = []  # node numbers of each polygon
        self.polygon_cells = []  # the cell that each is of
        if self.is_surface:
            for cell, (begin, end, kind) in enumerate(zip(offsets[:-1], offsets[1:], types, strict=True)):
                self.polygons.append(nodes[begin : begin + (SURFACE_CORNERS[int(kind)] or end - begin)])
                self.polygon_cells.append(cell)
        else:
            self._find_surface(offsets, nodes, types, path)

    def _values(self, root, group, name, rows):
        values = root[group][name]
        begin = 0
        if len(self.times):
            begin = int(root[f"Steps/{group}Offsets/{name}"][self.step])
        return values[begin : begin + rows]

    def _find_surface(self, offsets, nodes, types, path):
        """The faces that only one cell has, of cells with fixed faces."""
        faces = {}
        for cell, (begin, kind) in enumerate(zip(offsets[:-1], types, strict=True)):
            if int(kind) not in VOLUME_FACES:
                raise ValueError(f"{path}: cells of VTK's type {kind} cannot be drawn, only surfaces, tetrahedra, "
                                 "pyramids, prisms and hexahedra")
            for corners in VOLUME_FACES[int(kind)]:
                face = nodes[begin + np.array(corners)]
                key = tuple(sorted(face.tolist()))
                if faces.pop(key, None) is None:
                    faces[key] = (face, cell)
        for face, cell in faces.values():
            self.polygons.append(face)
            self.polygon_cells.append(cell)


_TETRA = ((0, 2, 1), (0, 1, 3), (1, 2, 3), (2, 0, 3))
_PYRAMID = ((0, 3, 2, 1), (0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4))
_WEDGE = ((0, 1, 2), (3, 5, 4), (0, 3, 4, 1), (1, 4, 5, 2), (2, 5, 3, 0))
_HEXA = ((0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7))
#: Corners of the faces of volumes, by the number of VTK's type, first and second order.
VOLUME_FACES = {10: _TETRA, 24: _TETRA, 14: _PYRAMID, 27: _PYRAMID, 13: _WEDGE, 26: _WEDGE, 32: _WEDGE,
                12: _HEXA, 25: _HEXA, 29: _HEXA}
