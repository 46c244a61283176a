#!/usr/bin/env bash
# Builds DNDS for the GPU of this machine and runs everything there that needs one, the most valuable first: whether kernels
# read their arguments where the host puts them, the tests of arrays and exchanges, of tasks, Euler, one-sided access and
# fields (several ranks sharing the GPU), the benchmarks, and compute-sanitizer where it works. Writes a report.
#
#   scripts/gpu-check.sh [--out FOLDER] [--budget SECONDS] [--bundle FILE] [--build FOLDER] [--parts LIST] [--jobs N]
#                        [--fresh] [--dry-run] [--no-mps] [--emulated | --without-gpu CC [--pack FILE]] [--prebuilt FILE]
#
#   --out FOLDER      where DATE.md and DATE.json are written (default $OUT where that is set, else docs/gpu-results)
#   --budget SECONDS  end within this time (default 520); the same command continues a call that was cut
#   --bundle FILE     headers, libraries and MPI made by scripts/gpu-bundle.sh (default build/gpu-bundle/bundle.tar.gz
#                     where it exists; else what is installed is used)
#   --build FOLDER    the build folder, which also keeps what earlier calls found (default build/gpu-check)
#   --parts LIST      only some of layout,core,tasks,euler,one-sided,fields,bench,sanitizer
#   --jobs N          compile N at a time (default: the number of processors)
#   --no-mps          let ranks take turns on the GPU, also where CUDA's Multi-Process Service (MPS) can be started
#   --fresh           start over, also where an earlier call was cut
#   --dry-run         say what this machine has, what it lacks and what would be run; run nothing
#   --emulated        a rehearsal on a machine without a GPU: the same with the emulated device, no CUDA needed
#   --without-gpu CC  a rehearsal with nvcc for GPUs of compute capability CC (9.0, ...): tests find no device and skip
#   --pack FILE       with --without-gpu: run no test, and pack the programs for a machine with a GPU (.tar.xz)
#   --prebuilt FILE   build nothing, and run programs packed elsewhere, whose sources and build folder had the same paths
#
# Exit code: 0 everything passed, 1 something failed or did not end in time, 2 wrong usage, 3 the machine lacks something
# (no GPU, no nvcc, ...; the text says what), in which case nothing was built, 4 the time was up before everything had run:
# run it again. The report is rewritten after each step, so that it is there even if the machine is taken away.
# docs/reference/gpu-check.md describes how to read it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
case " $* " in *" -h "* | *" --help "*)
    sed -n '2,30s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    echo "gpu-check.sh: Python 3.10 or newer is needed (nothing beyond its standard library)" >&2
    exit 3
fi
PYTHONUNBUFFERED=1 exec python3 "$here/gpu/check.py" "$@"
