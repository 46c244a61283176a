#!/usr/bin/env bash
# Builds DNDS and runs its demo: four ranks compute the flow over a wedge at Mach 2 and pictures show what came out.
#
#   scripts/demo.sh [--ghosts] [--generated] [--jobs N] [--ranks N] [--no-install]
#
#   --ghosts      the smaller demo ghost_pull instead: who owns a mesh, who has copies of what, and what a pull moves
#   --generated   generate the wedge's mesh even where ../shared/meshes/wedge_hdf5.cgns is there
#   --no-install  install no packages
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\033[1m==> %s\033[0m\n' "$*"; }
fail() {
    printf 'demo.sh: %s\n' "$*" >&2
    exit 1
}

jobs=$(nproc)
ranks=4
install=true
case=euler
mesh=../shared/meshes/wedge_hdf5.cgns
generated=false
while [ $# -gt 0 ]; do
    case "$1" in
    --jobs | --ranks) [ $# -ge 2 ] || fail "$1 needs a value" ;;
    esac
    case "$1" in
    --ghosts) case=ghost_pull ;;
    --generated) generated=true ;;
    --jobs) jobs=$2 && shift ;;
    --ranks) ranks=$2 && shift ;;
    --no-install) install=false ;;
    -h | --help)
        sed -n '2,8s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *) fail "unknown option $1 (see --help)" ;;
    esac
    shift
done

if $install; then
    say "checking packages"
    scripts/install-deps.sh --plot
fi
python=$(scripts/find-python.sh matplotlib numpy h5py) || fail "pictures need one: scripts/install-deps.sh --plot"

say "building the release preset with $jobs jobs"
cmake --preset release >/dev/null
cmake --build --preset release --parallel "$jobs" --target "$case"
program=build/release/cases/$case/$case

if [ "$case" = ghost_pull ]; then
    output=build/release/cases/ghost_pull/output
    mkdir -p "$output"
    say "running ghost_pull on $ranks ranks"
    scripts/mpirun.sh "$ranks" "$program" --output "$output"
    say "drawing"
    "$python" cases/ghost_pull/plot.py "$output" "$output/ghost_pull.png"
    say "the picture is $PWD/$output/ghost_pull.png"
    exit
fi

output=$PWD/build/release/cases/euler/output/demo
rm -rf "$output"
# On a terminal one line is rewritten. mpiexec may hide the terminal from its programs.
progress=lines
[ ! -t 1 ] || progress=line
arguments=(cases/euler/wedge.json --set "mesh.file=$PWD/$mesh")
if $generated || [ ! -f "$mesh" ]; then
    $generated || say "$mesh is not there: the mesh is generated"
    arguments=(cases/euler/ramp.json)
fi
arguments+=(--set "output.folder=$output" --set output.historyEvery=10 --progress "$progress")
say "computing the flow on $ranks ranks: euler ${arguments[*]}"
scripts/mpirun.sh "$ranks" "$program" "${arguments[@]}"

say "drawing"
"$python" cases/euler/plot.py "$output" --wedge 0.5 0 10
# Where the Python package is built too, its tool draws any field of any such file.
for candidate in build/python-venv/bin/python3 "$python"; do
    if PYTHONPATH=build/release/python "$candidate" -c 'import dnds, h5py, matplotlib' 2>/dev/null; then
        PYTHONPATH=build/release/python "$candidate" -m dnds.plot "$output/fields.vtkhdf" --field mach \
            --history "$output/history.csv" --output "$output/mach.png"
        break
    fi
done
say "the field is $output/fields.vtkhdf (for ParaView), the pictures are named above"
