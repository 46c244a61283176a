# What nanobind's stubgen cannot know of the module: exceptions, which are not made by nanobind, and private names that
# the package itself uses. In Array, the method numpy hides the module: members there name types without it.

_core.__prefix__:
    \import builtins
    \from numpy import dtype as DType
    \from numpy import int32 as Int32
    \from numpy import int64 as Int64
    \from numpy.typing import ArrayLike
    \from numpy.typing import DTypeLike
    \from numpy.typing import NDArray
    \from .blocks import NdArray
    __version__: str

    def _check_mpi() -> None: ...
    def _write_netcdf(path: object, arrays: dict[str, NdArray], time: float | None, time_units: str,
                      comm: object) -> None: ...

_core.__suffix__:
    class Error(RuntimeError):
        """Base of all exceptions of the library. The text has kind, rank and source location."""

        message: str
        """The text alone."""

        rank: int
        """The rank in MPI.COMM_WORLD that found the error."""

    class ArgumentError(Error, ValueError):
        """An argument is outside what the function accepts."""

    class IndexError(Error, builtins.IndexError):
        """A row or element number is out of range."""

    class LayoutError(Error, ValueError):
        """Row layouts, widths or types do not fit each other."""

    class StateError(Error):
        """Calls in the wrong order, or on something that is not set up."""

    class StaleError(Error):
        """The copy (host or device) that is asked for is not the current one."""

    class DataError(Error):
        """Values received or read contradict each other."""

    class MemoryError(Error, builtins.MemoryError):
        """Memory could not be had."""

    class MpiError(Error):
        """A call of MPI failed."""

    class PeerError(Error):
        """Another rank failed in an exchange with this one."""

    class RevokedError(PeerError):
        """A running call failed on some rank; recover(), on all ranks, goes on."""

    class NotBuiltError(Error):
        """This build does not contain what is asked for."""
