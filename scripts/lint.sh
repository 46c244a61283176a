#!/usr/bin/env bash
# Checks formatting and style of everything in the repository.
#
#   scripts/lint.sh [--fix] [--tidy] [--tidy-seconds N] [--only CHECK] [--subject FILE]
#
#   --fix             format C++ files in place instead of complaining
#   --only CHECK      one of format, lists, layers, kernel_types, collectives, shell, names, settings, performance, weight,
#                     subjects, descriptions, python
#   --subject FILE    whether a commit's message in a file has a subject of at most 72 characters, for a hook
#   --tidy            clang-tidy over src/ and python/src/, source by source, instead of everything else; configures build/tidy
#   --tidy-seconds N  stop clang-tidy after N seconds, without failing (default 300)
#
# clang-format and clang-tidy are used in version 14 only, because each version formats a little differently.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=/dev/null
. scripts/say.sh

fix=false
tidy=false
tidy_seconds=300
only=
message=
while [ $# -gt 0 ]; do
    case "$1" in
    --fix) fix=true ;;
    --tidy) tidy=true ;;
    --only) only=${2:?} && shift ;;
    --subject) message=${2:?} && shift ;;
    --tidy-seconds) tidy_seconds=${2:?} && shift ;;
    -h | --help)
        sed -n '2,13s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *)
        echo "lint.sh: unknown option $1 (see --help)" >&2
        exit 2
        ;;
    esac
    shift
done

# Every file that git tracks or would track, filtered by the given patterns.
files() {
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files --cached --others --exclude-standard --deduplicate -- "$@" | while read -r file; do
            [ ! -f "$file" ] || echo "$file"
        done
    else
        local pattern names=()
        for pattern in "$@"; do names+=(-o -name "$pattern"); done
        find . -path ./build -prune -o -type f \( "${names[@]:1}" \) -printf '%P\n'
    fi
}

# A tool from the system in the version given, else one from PyPI in a virtual environment under build/.
tool() {
    local name=$1 version=$2 candidate
    for candidate in "$name-${version%%.*}" "$name"; do
        if command -v "$candidate" >/dev/null && { [ -z "$version" ] ||
            "$candidate" --version | grep -q "version ${version%%.*}\."; }; then
            echo "$candidate"
            return
        fi
    done
    local venv=build/lint-venv
    if [ ! -x "$venv/bin/$name" ]; then
        { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet "$name${version:+==$version.*}"; } \
            >/dev/null 2>&1 || return 0
    fi
    echo "$venv/bin/$name"
}

failed=()

mapfile -t sources < <(files '*.cpp' '*.hpp' '*.cu' '*.cuh')

check_format() {
    say "clang-format"
    local format
    format=$(tool clang-format 14.0)
    if [ -z "$format" ]; then
        echo "skipped: clang-format 14 is neither installed nor to be had from PyPI"
    elif $fix; then
        "$format" -i "${sources[@]}"
    else
        "$format" --dry-run --Werror "${sources[@]}" || failed+=("clang-format (scripts/lint.sh --fix mends it)")
    fi
}

# Every source, and every public header, is named in the nearest CMakeLists.txt; tests in any of test/.
check_lists() {
    say "source lists"
    local file folder complete=true test_lists
    test_lists=$(find test -name CMakeLists.txt -exec cat {} +) # a test may lie in another folder than its program
    for file in "${sources[@]}"; do
        case "$file" in
        docs/* | test/consumer/* | src/CUDA/*.hpp | src/CUDA/*.cuh) continue ;;
        src/*) ;;
        *.hpp | *.cuh) continue ;;
        esac
        folder=$(dirname "$file")
        while [ "$folder" != . ] && [ ! -f "$folder/CMakeLists.txt" ]; do folder=$(dirname "$folder"); done
        if ! grep -qE "(^|[^A-Za-z0-9_/])${file#"$folder"/}([^A-Za-z0-9_]|\$)" "$folder/CMakeLists.txt" &&
            ! { [[ $file == test/* ]] && grep -qE "/${file#test/*/}([^A-Za-z0-9_]|\$)" <<<"$test_lists"; }; then
            echo "$file is not named in $folder/CMakeLists.txt"
            complete=false
        fi
    done
    $complete || failed+=("source lists")
}

# Which folder of src/ may include which: scripts/layers.txt.
check_layers() {
    say "layers"
    python3 scripts/check_layers.py || failed+=("layers (scripts/layers.txt)")
}

# Types that kernels take are laid out alike by all compilers.
check_kernel_types() {
    say "kernel types"
    python3 scripts/check_kernel_types.py || failed+=("kernel types (scripts/check_kernel_types.py)")
}

# Only src/DNDS/Mpi calls collectives of MPI: those of CommunicatorView agree first on what any rank has failed with.
check_collectives() {
    say "collectives"
    local moving='bcast|scan|exscan|all(gather|reduce|toall)[vw]?|gatherv?|scatterv?|reduce(_scatter(_block)?)?|barrier'
    local making='neighbor_[a-z]+|comm_i?(dup|split|create)[a-z_]*|win_[a-z_]+|file_[a-z_]+'
    local raw="\\bP?MPI_I?($moving|$making)(_c|_init)? *\\(" sources
    mapfile -t sources < <(files 'src/*.cpp' 'src/*.hpp' 'src/*.cu' 'src/*.cuh' | grep -v '^src/DNDS/Mpi/')
    if grep -niE "$raw" "${sources[@]}"; then
        failed+=("collectives of MPI outside src/DNDS/Mpi: CommunicatorView and the headers beside it have them")
    fi
}

check_shell() {
    say "shellcheck"
    local scripts
    mapfile -t scripts < <(files '*.sh' && echo .ci/run)
    if command -v shellcheck >/dev/null; then
        shellcheck "${scripts[@]}" || failed+=("shellcheck")
    else
        echo "skipped: shellcheck is not installed"
    fi
}

# Tables of pages for newcomers name what there is.
check_names() {
    say "names in pages for newcomers"
    python3 docs/site/check_names.py . docs/start/coming_from.md docs/start/dndsr.md || failed+=("names in pages for newcomers")
}

# docs/reference/settings.md lists what the sources read.
check_settings() {
    say "settings"
    python3 scripts/settings.py --check || failed+=("settings (scripts/settings.py mends the page)")
}

# docs/reference/performance.md shows the newest records of bench/history.
check_performance() {
    say "performance"
    python3 scripts/bench/page.py --check || failed+=("performance (scripts/bench/page.py mends the page)")
}

# Figures that may only fall: classes, lines, phrases to avoid (scripts/weight.json).
check_weight() {
    say "weight"
    python3 scripts/weight.py || failed+=("weight (scripts/weight.py --words lists phrases; --update records progress)")
}

# Reads subjects, each after a name, and complains about long ones.
short_subjects() {
    awk -F '\t' 'length($2) > 72 {printf "%s: a subject of %d characters: %s\n", $1, length($2), $2; bad = 1} END {exit bad}'
}

# Subjects of commits since the one recorded in scripts/subjects_since.txt. Merges, which git words, are not looked at.
check_subjects() {
    say "subjects of commits"
    local base
    base=$(cat scripts/subjects_since.txt)
    if ! git merge-base --is-ancestor "$base" HEAD 2>/dev/null; then
        echo "skipped: the history does not reach back to $base"
        return
    fi
    git log --no-merges --format='%h%x09%s' "$base..HEAD" | short_subjects ||
        failed+=("subjects of commits: at most 72 characters")
}

# Every public function has a description.
check_descriptions() {
    say "descriptions"
    if ! command -v doxygen >/dev/null; then
        echo "skipped: doxygen is not installed"
        return
    fi
    rm -rf build/doxygen && mkdir -p build/doxygen # what stays of headers that are gone would be checked, too
    { doxygen docs/Doxyfile >/dev/null && python3 docs/site/check_descriptions.py . build/doxygen/xml; } ||
        failed+=("descriptions")
}

check_python() {
    local scripts ruff
    mapfile -t scripts < <(files '*.py')
    [ ${#scripts[@]} -gt 0 ] || return 0
    say "ruff"
    ruff=$(tool ruff "")
    if [ -z "$ruff" ]; then
        echo "skipped: ruff is neither installed nor to be had from PyPI"
    else
        "$ruff" check --quiet --isolated --select E,F,W,I,B --line-length 120 "${scripts[@]}" || failed+=("ruff")
    fi
}

check_tidy() {
    say "clang-tidy (at most $tidy_seconds s)"
    local clang_tidy units status=0
    clang_tidy=$(tool clang-tidy 14.0)
    if [ -z "$clang_tidy" ]; then
        echo "skipped: clang-tidy 14 is neither installed nor to be had from PyPI"
        return
    fi
    # A folder of its own, since build/release may join sources (DNDS_FAST_COMPILE).
    mkdir -p build/tidy
    if ! cmake --preset release -B build/tidy >build/tidy/configure.log 2>&1; then
        cat build/tidy/configure.log
        failed+=("clang-tidy: build/tidy could not be configured")
        return
    fi
    # Only what the release preset compiles: clang-tidy would guess the flags of other files. What changed last comes
    # first, since time may not suffice for all.
    mapfile -t units < <(
        { git log --format= --name-only -- src python/src 2>/dev/null || true; files 'src/*.cpp' 'python/src/*.cpp'; } |
            awk '!seen[$0]++' | while read -r file; do
            ! grep -qF "\"file\": \"$PWD/$file\"" build/tidy/compile_commands.json || echo "$file"
        done
    )
    local output=build/tidy/clang-tidy.log
    printf '%s\0' "${units[@]}" | timeout "$tidy_seconds" xargs -0 -n 1 -P "$(nproc)" \
        "$clang_tidy" --quiet -p build/tidy 2>/dev/null | tee "$output" || status=$?
    if grep -q ': error: ' "$output"; then
        failed+=("clang-tidy")
    elif [ $status -eq 124 ]; then
        echo "stopped after $tidy_seconds s; the rest of ${#units[@]} sources was not checked"
    elif [ $status -ne 0 ]; then
        failed+=("clang-tidy: it ended with $status")
    fi
}

if [ -n "$message" ]; then
    sed '/^#/d' "$message" | awk 'NF {printf "commit\t%s\n", $0; exit}' | short_subjects ||
        failed+=("subject of the commit: at most 72 characters")
elif [ -n "$only" ]; then
    if ! declare -F "check_$only" >/dev/null; then
        echo "lint.sh: no check is called $only (see --help)" >&2
        exit 2
    fi
    "check_$only"
elif $tidy; then
    check_tidy
else
    check_format
    check_lists
    check_layers
    check_kernel_types
    check_collectives
    check_shell
    check_names
    check_settings
    check_performance
    check_weight
    check_subjects
    check_descriptions
    check_python
fi

if [ ${#failed[@]} -gt 0 ]; then
    printf 'lint.sh: failed: %s\n' "${failed[@]}" >&2
    exit 1
fi
say "lint passed"
