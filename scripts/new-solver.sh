#!/usr/bin/env bash
# Begins a project of one's own: a solver on tasks that compiles against an installed DNDS, with a test and a script
# that runs it.
#
#   scripts/new-solver.sh NAME [FOLDER]     in ./NAME unless a folder is given
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/say.sh
source "$here/say.sh"

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
name=$1 folder=${2:-$1}
[[ $name =~ ^[A-Za-z][A-Za-z0-9_-]*$ ]] || fail "'$name': a name is letters, digits, _ and -, and begins with a letter"
case $name in test | all | install | clean | help | edit_cache | rebuild_cache | package) fail "'$name' is a target of CMake's: choose another name" ;; esac
[ ! -e "$folder" ] || fail "'$folder' is there already: nothing was written"

mkdir -p "$folder"
for file in CMakeLists.txt run.sh solver.cpp; do
    sed "s/\bsolver\b/$name/g" "$here/new-solver/$file" >"$folder/${file/solver/$name}"
done
chmod +x "$folder/run.sh"
echo build/ >"$folder/.gitignore"

say "$folder: begin with $name.cpp"
cat <<TEXT
    cd $folder
    export CMAKE_PREFIX_PATH=\$HOME/dnds      # where DNDS is installed
    ./run.sh                                 # builds, and runs on 2 ranks
    ctest --test-dir build                   # on 1 and 2 ranks
TEXT
