"""mpiexec -n 64 python3 -m dnds.doctor: what is wrong with the machines that a job got, and what to do.

Becomes the program dnds-doctor, with its options and exit codes: 0 fine, 1 warnings, 2 errors. Start it as the solver
is started.
"""

import os
import pathlib
import shutil
import sys


def program():
    """The path of dnds-doctor: beside the package, in the build that it belongs to, or in PATH. None without one."""
    package = pathlib.Path(__file__).resolve().parent
    for path in (package / "bin/dnds-doctor", package.parents[1] / "cases/doctor/dnds-doctor"):
        if os.access(path, os.X_OK):
            return str(path)
    return shutil.which("dnds-doctor")


def main(arguments=None):
    path = program()
    if path is None:
        print("dnds.doctor: there is no dnds-doctor beside this package or in PATH: build the target dnds_doctor of "
              "DNDS, and install it (cmake --install)", file=sys.stderr)
        return 2
    # MPI must not run yet: it would be started twice in one process.
    os.execv(path, [path, *(sys.argv[1:] if arguments is None else arguments)])


if __name__ == "__main__":
    sys.exit(main())
