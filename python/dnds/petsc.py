"""Fields as vectors of PETSc, without a copy. Needs the package petsc4py."""

import numpy as np
from mpi4py import MPI
from petsc4py import PETSc

from . import ArgumentError, Field, StateError


def _rows(field):
    """The owned rows that PETSc may take, and their block size."""
    if not isinstance(field, Field):
        raise ArgumentError(f"a vector shows the rows of a dnds.Field, not of {type(field).__name__}")
    rows = field.owned
    if rows.dtype != PETSc.ScalarType:
        raise ArgumentError(f"'{field.name}' has elements of {rows.dtype}, this PETSc of {np.dtype(PETSc.ScalarType)}")
    if not rows.flags.writeable:
        raise StateError(f"'{field.name}' is being pulled: wait before PETSc may write it")
    return rows.reshape(-1), field.width or 1


def vec(field, *, comm=None):
    """The owned rows of a field as a petsc4py.PETSc.Vec in their memory; its block size is the field's width.

    It shows what the program writes later, and keeps the memory alive; after a resize of the field it shows the old
    rows. Ghosts are no part of it: pull when PETSc has written. Call `destroy()` on all ranks before the field's
    communicator is freed. Collective. A rank that gives no field says so over `comm`, by default MPI.COMM_WORLD; else
    that of the field counts. Raises on all ranks ArgumentError for what is no field, widths that differ between ranks,
    and elements of another type than PETSc's numbers; LayoutError for rows of several sizes, StateError while a pull is
    in flight. Ranks on which nothing is wrong raise ArgumentError.
    """
    if isinstance(field, Field):
        comm = field.comm
    elif comm is None:
        comm = MPI.COMM_WORLD
    rows, width, failure = None, 0, None
    try:
        rows, width = _rows(field)
    except Exception as error:  # raised below, when all ranks know
        failure = error
    facts = np.array([comm.size if failure is None else comm.rank, width, -width], dtype="int64")
    comm.Allreduce(MPI.IN_PLACE, facts, op=MPI.MIN)
    first, least, most = facts[0], facts[1], -facts[2]
    if first < comm.size:
        text = comm.bcast(str(failure), root=first)
        raise failure or ArgumentError(f"rank {first} cannot make its part of the vector: {text}")
    if least != most:
        raise ArgumentError(f"'{field.name}' has width {width} here but {least} to {most} on all ranks")
    return PETSc.Vec().createWithArray(rows, bsize=width, comm=comm)
