#!/usr/bin/env bash
# Builds DNDS and runs its demo: as many ranks as there are cores compute the flow over a wedge at Mach 2, pictures show what
# came out, and a case of 300,000 cells what computing during pulls won.
#
#   scripts/demo.sh [--ghosts] [--generated] [--jobs N] [--ranks N] [--no-install]
#
#   --ghosts      the smaller demo ghost_pull instead: who owns a mesh, who has copies of what, and what a pull moves
#   --generated   generate the wedge's mesh even where ../shared/meshes/wedge_hdf5.cgns is there
#   --ranks N     so many instead of one a core, at most 16
#   --no-install  install no packages
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=/dev/null
. scripts/say.sh

jobs=$(nproc)
cores=$(nproc)
ranks=$((cores < 16 ? cores : 16))
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
        sed -n '2,10s/^# \{0,1\}//p' "$0"
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

# seconds BOOLEAN: of 20 steps on 300,000 cells, with or without computing during pulls.
seconds() {
    local folder=$output/overlap
    scripts/mpirun.sh "$ranks" "$program" cases/euler/ramp.json --progress none --set 'mesh.box.cells=[600,500,1]' \
        --set mesh.partitioner=curve --set "scheme.overlap=$1" --set time.steps=20 --set output.fields=false \
        --set "output.folder=$folder" >/dev/null
    sed -n 's/.*"seconds": \([0-9.]*\).*/\1/p' "$folder/run.json" | head -n 1
}
if [ "$ranks" -gt 1 ]; then
    say "300,000 cells on $ranks ranks: 20 steps, computing during pulls and after them, the better of two runs each"
    with=() without=()
    for _ in 1 2; do
        with+=("$(seconds true)")
        without+=("$(seconds false)")
    done
    printf '%s %s %s %s\n' "${with[@]}" "${without[@]}" | awk '{
        a = $1 < $2 ? $1 : $2; b = $3 < $4 ? $3 : $4
        printf "overlap: %.2f s with it, %.2f s without: %+.1f %% of the time\n", a, b, 100 * (a / b - 1)
    }'
    [ "$ranks" -le "$cores" ] || echo "($ranks ranks on $cores cores: who waits for a core hides what overlap wins)"
fi

say "the field is $output/fields.vtkhdf (for ParaView), the pictures are named above"
cat <<TEXT
Next:
  scripts/demo.sh --ghosts                                 who owns a mesh, and what a pull moves
  cases/euler/README.md                                    your own flow: configurations, checkpoints, clusters, GPUs
  docs/tutorial.md, docs/first_solver.md                   a solver of your own, in C++
  docs/python.md                                           and in Python
  cases/doctor/README.md                                   what this machine gives to MPI
  scripts/test.sh                                          the tests
TEXT
