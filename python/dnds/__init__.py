"""Distributed arrays with ghost rows for unstructured-mesh solvers on MPI.

Importing this starts MPI through mpi4py, where it does not run yet.
"""

from mpi4py import MPI as _MPI

from ._core import *  # noqa: F403
from ._core import __version__ as __version__
from ._core import _check_mpi

_check_mpi()
_MPI.COMM_WORLD.Set_errhandler(_MPI.ERRORS_RETURN)
