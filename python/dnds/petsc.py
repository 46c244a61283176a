"""Fields as vectors of PETSc, without a copy. Needs the package petsc4py."""

import numpy as np
from petsc4py import PETSc

from . import ArgumentError, StateError


def vec(field):
    """The owned rows of a field as a petsc4py.PETSc.Vec in their memory; its block size is the field's width.

    It shows what the program writes later, and keeps the memory alive; after a resize of the field it shows the old
    rows. Ghosts are no part of it: pull when PETSc has written. Call `destroy()` on all ranks before the field's
    communicator is freed. Collective. Raises ArgumentError for elements of another type than PETSc's numbers,
    LayoutError for rows of several sizes, StateError while a pull is in flight.
    """
    rows = field.owned
    if rows.dtype != PETSc.ScalarType:
        raise ArgumentError(f"'{field.name}' has elements of {rows.dtype}, this PETSc of {np.dtype(PETSc.ScalarType)}")
    if not rows.flags.writeable:
        raise StateError(f"'{field.name}' is being pulled: wait before PETSc may write it")
    return PETSc.Vec().createWithArray(rows.reshape(-1), bsize=field.width or 1, comm=field.comm)
