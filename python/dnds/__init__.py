"""Distributed arrays with ghost rows for unstructured-mesh solvers on MPI.

Importing this starts MPI through mpi4py, where it does not run yet. Where the launcher belongs to another MPI, so that
each rank believes to be alone, the first says so on stderr.
"""

import atexit as _atexit
import sys as _sys


def _runs_a_tool():
    """Whether this is `python -m dnds.trace` or `dnds.doctor`, which need neither MPI nor the compiled module."""
    if _sys.argv[:1] != ["-m"]:  # so while the package of a module to be run is imported
        return False
    arguments = _sys.orig_argv
    pairs = list(zip(arguments, arguments[1:]))  # noqa: B905
    return any(f"-m{tool}" in arguments or ("-m", tool) in pairs for tool in ("dnds.trace", "dnds.doctor"))


if not _runs_a_tool():
    from mpi4py import MPI as _MPI

    try:
        from ._core import *  # noqa: F403
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}._core":
            raise
        import pathlib

        built = ", ".join(path.name for path in pathlib.Path(__file__).parent.glob("_core.*")) or "nothing"
        raise ImportError(f"dnds was not built for {_sys.executable}, Python {_sys.version.split()[0]}: beside "
                          f"{__file__} there is {built}") from None
    from ._core import __version__ as __version__
    from ._core import _check_mpi
    from .blocks import BlockFace as BlockFace
    from .blocks import Connection as Connection
    from .blocks import NdArray as NdArray
    from .blocks import high_face as high_face
    from .blocks import low_face as low_face
    from .blocks import write_netcdf as write_netcdf

    _check_mpi()
    _atexit.register(set_warning_sink, None)  # noqa: F405
    _MPI.COMM_WORLD.Set_errhandler(_MPI.ERRORS_RETURN)
