"""NdArray: one array of 1 to 4 dimensions, cut over the ranks."""

from typing import NamedTuple

import numpy as np

from ._core import BlockField, BlockGrid, StateError, _write_netcdf


class Connection(NamedTuple):
    """Faces of two index spaces that touch vertex by vertex, as a CGNS 1-to-1 connection says it, counted from 0.

    The cell c lies between the vertices c and c + 1. Entry d of `transform` is +-(a + 1) where dimension d runs along
    dimension a of the other space, forwards or backwards. One connection serves both directions.
    """
    space: str
    begin: tuple
    end: tuple
    other: str
    other_begin: tuple
    transform: tuple


class BlockFace(NamedTuple):
    """One end of a dimension: of the index space of this name, or of all that are not periodic there."""
    dim: int
    high: bool = False
    space: str | None = None


def low_face(dim, space=None):
    """The face below the first cells of a dimension."""
    return BlockFace(dim, False, space)


def high_face(dim, space=None):
    """The face above the last cells of a dimension."""
    return BlockFace(dim, True, space)


def write_netcdf(path, arrays, *, time=None, time_units="s"):
    """Writes several NdArrays of one communicator, `{"u": u, "p": p}`, to one NetCDF file, each with its `dims`,
    `coords` and `bounds`, by CF: see `NdArray.write_netcdf`. Dimensions of one name are the same. Collective."""
    if not arrays:
        raise ValueError("write_netcdf is given no arrays")
    if not all(isinstance(array, NdArray) for array in arrays.values()):
        raise TypeError("write_netcdf takes NdArrays by name: a BlockField may have several blocks a rank")
    _write_netcdf(path, dict(arrays), time, time_units, next(iter(arrays.values())).comm)


#: Attributes that say how a file's numbers stand for values: they do not belong to the values.
_PACKING = {"scale_factor", "add_offset", "_FillValue", "missing_value", "valid_min", "valid_max", "valid_range",
            "_Unsigned"}


class NdArray:
    """An array of which each rank has one box of cells, with ghosts around it: the NdArray of C++.

        t = dnds.NdArray("t", "float32")
        t.decompose((1000, 800), ghosts=1, periodic=(False, True))
        t.core[:] = 1             # this rank's cells: a NumPy view, no copy
        t.exchange_ghosts()
        t.extent                  # the same with ghosts

    `dims` names the dimensions, and `coords` holds global coordinates by the dimension's name, so that
    `xarray.DataArray(t.core, dims=t.dims, coords=t.local_coords)` labels this rank's part; `coord_attrs` their
    attributes, and `bounds` the nodes between the cells of a dimension, one more than these. Ranks without cells take
    part in what is collective, and have views of extent 0.
    """

    def __init__(self, name="array", dtype="float64"):
        self.name = name
        self.dtype = np.dtype(dtype)
        self._field = None
        self._forget()

    def _forget(self):
        self._dims = None
        self.coords = {}
        self.coord_attrs = {}
        self.bounds = {}
        self.attrs = {}

    def decompose(self, shape, *, ranks=0, parts=None, ghosts=None, ghost_shape="box", periodic=None, components=1,
                  order="inside", centring="cells", dims=None, comm=None):
        """Cuts the array over the ranks; forgets contents and cut of before. Collective. The best cut depends on shape,
        periodic directions and ranks alone: arrays of one shape have the same cells on each rank.

        `ranks`: only the first so many get cells; 0 is all. `parts` a dimension: None is best, 0 or 1 not cut, -1 best
        for this one. `ghosts`: one width for all dimensions, or a list of widths or pairs (low, high). `ghost_shape`:
        exchanges fill all ghosts ("box") or none at edges and corners ("star"). Components are "inside" the cells (the
        last dimension of views) or "outside" (the first). `centring`: values are in "cells", at "nodes", on
        ("faces", d) or ("edges", d), as of BlockField; `shape` counts cells.
        """
        grid = BlockGrid.cut(shape, periodic=periodic, parts=parts, ranks=ranks, comm=comm)
        self._field = BlockField(grid, components, self.dtype, ghosts=ghosts, ghost_shape=ghost_shape, order=order,
                                 centring=centring, name=self.name)
        self._order = order
        self._forget()
        if dims is not None:
            self.dims = dims

    @property
    def field(self):
        """The BlockField, for all that is not here."""
        if self._field is None:
            raise StateError(f"the array '{self.name}' has no shape yet: call decompose first")
        return self._field

    @property
    def grid(self):
        """The BlockGrid."""
        return self.field.grid

    @property
    def comm(self):
        """The communicator."""
        return self.grid.comm

    @property
    def is_distributed(self):
        """Whether it was cut into blocks, be it on one rank."""
        return self._field is not None

    @property
    def components(self):
        """Numbers of each cell."""
        return self.field.components

    @property
    def global_shape(self):
        """Cells a dimension, of all ranks; or points, of which a period repeats none."""
        return self.field.global_shape

    @property
    def dims(self):
        """Names of the dimensions of `core`: of the cells ("x0", "x1", ... unless given, "x0_node" of nodes), and
        "component"."""
        cells = self._dims or tuple(f"x{d}" + "_node" * nodal for d, nodal in enumerate(self.field.nodal))
        if self.components == 1:
            return cells
        return ("component", *cells) if self._order == "outside" else (*cells, "component")

    @dims.setter
    def dims(self, names):
        names = tuple(names)
        if len(names) != self.grid.dims or len(set(names)) != len(names):
            raise ValueError(f"{names} are no {self.grid.dims} different names of dimensions")
        self._dims = names

    def _box(self, ghosts):
        if len(self.field) == 0:
            return (0,) * self.grid.dims, (0,) * self.grid.dims
        return self.field.box(0, ghosts=ghosts)

    @property
    def local_core(self):
        """(first, end) of this rank's cells, in global numbers; empty where it has none."""
        return self._box(False)

    @property
    def local_extent(self):
        """The same with ghosts, whose global numbers may lie outside of the array."""
        return self._box(True)

    @property
    def local_slices(self):
        """Where this rank's cells are in the global array: `whole[t.local_slices]`. Lists of indices, where a node of
        this rank is one that a period repeats."""
        if all(high <= n for high, n in zip(self.local_core[1], self.global_shape, strict=True)):
            return tuple(slice(low, high) for low, high in zip(*self.local_core, strict=True))
        return np.ix_(*self._local_places())

    def _local_places(self):
        return [np.arange(low, high) % n for low, high, n in zip(*self.local_core, self.global_shape, strict=True)]

    @property
    def local_coords(self):
        """The part of `coords` that belongs to this rank's cells."""
        cells = [name for name in self.dims if self.components == 1 or name != "component"]
        return {name: np.asarray(self.coords[name])[places]
                for name, places in zip(cells, self._local_places(), strict=True) if name in self.coords}

    def to_local(self, cell):
        """Indices into `core` of a global cell; those of ghosts are below 0 or from the core's extents on."""
        return tuple(int(c) - low for c, low in zip(cell, self.local_core[0], strict=True))

    def to_global(self, cell):
        """The inverse."""
        return tuple(int(c) + low for c, low in zip(cell, self.local_core[0], strict=True))

    def owner_of(self, cell):
        """The rank that has a global cell, or -1 outside of the array."""
        return self.field.owner_of(cell)

    def _view(self, ghosts):
        if len(self.field) > 0:
            return self.field.view(0, ghosts=ghosts)
        shape = [0] * self.grid.dims
        if self.components > 1:
            shape.insert(0 if self._order == "outside" else len(shape), self.components)
        return np.zeros(shape, self.dtype)

    @property
    def core(self):
        """This rank's cells without copying; read-only while an exchange is in flight."""
        return self._view(False)

    @core.setter
    def core(self, values):
        self.core[...] = values

    @property
    def extent(self):
        """This rank's cells and ghosts without copying. Raises StateError while an exchange is in flight."""
        return self._view(True)

    @extent.setter
    def extent(self, values):
        self.extent[...] = values

    def exchange_ghosts(self):
        """Refreshes the ghosts. Collective."""
        self.field.exchange_ghosts()

    def start_exchange_ghosts(self):
        """Starts it: a context manager whose end finishes it, or call `finish_exchange_ghosts`."""
        return self.field.start_exchange_ghosts()

    def finish_exchange_ghosts(self):
        """Completes what was started."""
        self.field.finish_exchange_ghosts()

    def push_ghosts(self, op="sum"):
        """Adds what was deposited into ghosts to the cells they stand for: `BlockField.push_ghosts`. Collective."""
        self.field.push_ghosts(op)

    def to_device(self):
        """Makes the device side current, and moves exchanges there."""
        self.field.to_device()

    def to_host(self):
        """Makes the host side current, and moves exchanges there."""
        self.field.to_host()

    def read_netcdf(self, path, variable, step=0, *, isel=None, sel=None):
        """Reads a variable, each rank its own part; ghosts stay as they are. Collective.

        The variable has the array's shape, besides dimensions of length 1 and a first one, of which `step` is taken
        (-1: the last). Others are picked by a place, `isel={"level": 2}`, or by the nearest coordinate,
        `sel={"level": 500.0}`; then every dimension that is not the array's is named. Packed values are unpacked,
        missing ones are NaN. Takes over `dims`, `coords`, `coord_attrs`, `bounds` and `attrs` from the file. Points
        that ranks share are current after an exchange of ghosts. Raises on all ranks.
        """
        dims, coords, coord_attrs, bounds, attrs = self.field._read_netcdf(path, variable, step, isel, sel)
        if self.components > 1:
            dims = dims[1:] if self._order == "outside" else dims[:-1]
        self.dims = dims
        self.coords, self.coord_attrs, self.bounds = (
            {name: values for name, values in of_file.items() if name in dims}
            for of_file in (coords, coord_attrs, bounds))
        self.attrs = {name: value for name, value in attrs.items() if name not in _PACKING}

    def write_netcdf(self, path, variable=None, *, time=None, time_units="s"):
        """Writes a NetCDF file of this array with its dimensions, coordinates and attributes. Collective.

        Coordinates follow CF: `bounds` of cells become a variable "<dimension>_bnds", and their middles the coordinates
        where `coords` has none. `dnds.write_netcdf` writes several arrays to a file.

        With a `time`, a step is added after the last one of the file's unlimited dimension "time"; a missing file is
        made. `time_units` is for new files ("hours since 2000-01-01").
        """
        write_netcdf(path, {variable or self.name: self}, time=time, time_units=time_units)

    def describe(self):
        """The cut, why it was chosen, and what each rank has."""
        return self.grid.describe()

    def __repr__(self):
        what = self.field.grid if self.is_distributed else "not decomposed"
        return f"<dnds.NdArray '{self.name}' of {self.dtype}: {what}>"
