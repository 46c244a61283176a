"""Distributed arrays with ghost rows for unstructured-mesh solvers on MPI.

Importing this starts MPI through mpi4py, where it does not run yet. Where the launcher belongs to another MPI, so that
each rank believes to be alone, the first says so on stderr.
"""

from mpi4py import MPI as _MPI

try:
    from ._core import *  # noqa: F403
except ModuleNotFoundError as error:
    if error.name != f"{__name__}._core":
        raise
    import pathlib
    import sys

    built = ", ".join(path.name for path in pathlib.Path(__file__).parent.glob("_core.*")) or "nothing"
    raise ImportError(f"dnds was not built for {sys.executable}, Python {sys.version.split()[0]}: beside {__file__} "
                      f"there is {built}") from None
from ._core import __version__ as __version__
from ._core import _check_mpi

_check_mpi()
_MPI.COMM_WORLD.Set_errhandler(_MPI.ERRORS_RETURN)
