#!/usr/bin/env bash
# Installs what is missing, builds DNDS and runs its tests.
#
#   scripts/test.sh [--preset NAME]... [--label REGEX] [--target NAME] [--jobs N] [--quick] [--werror]
#                   [--fast-compile] [--unoptimized] [--verify-headers] [--no-install] [--build-only | --test-only]
#
#   --preset NAME     a preset of CMakePresets.json (release, debug, tsan, emulated, cuda, mpich); may be repeated;
#                     release unless given
#   --label REGEX     only tests with a matching label (core, device, geom, python, slow, np1, ...)
#   --target NAME     build this instead of everything; tests_LABEL is what the tests with a label need
#   --jobs N          compile N at a time and keep N processors busy with tests (default: the number of processors)
#   --quick           leave out slow tests and those on more than 3 ranks
#   --werror          turn compiler warnings into errors
#   --fast-compile    for machines: several sources of a library or test at a time, debug information that suffices for traces,
#                     and fewer of the sanitizers' checks in programs; takes half the time. A new build/release has it.
#   --unoptimized     compile with -O1, where the speed of what is tested does not matter (at -O0 GCC refuses a part of Eigen)
#   --verify-headers  compile every public header by itself, too
#   --no-install      install nothing
#   --build-only      run no tests
#   --test-only       neither configure nor build: run the tests of what is built
#
# It may be run as often as one likes; the last line counts passed and failed tests over all presets.
# DNDS_CCACHE=ON|OFF: ON compiles through ccache.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=/dev/null
. scripts/say.sh

presets=()
jobs=$(nproc)
ctest_options=()
build_options=()
werror=OFF
fast_compile=OFF
unoptimized=()
verify_headers=false
install=true
build=true
test=true
while [ $# -gt 0 ]; do
    case "$1" in
    --preset | --label | --target | --jobs) [ $# -ge 2 ] || fail "$1 needs a value" ;;
    esac
    case "$1" in
    --preset) presets+=("$2") && shift ;;
    --label) ctest_options+=(--label-regex "$2") && shift ;;
    --target) build_options+=(--target "$2") && shift ;;
    --jobs) jobs=$2 && shift ;;
    --quick) ctest_options+=(--label-exclude '^(slow|np4|np8|np64)$') ;;
    --werror) werror=ON ;;
    --fast-compile) fast_compile=ON ;;
    --unoptimized) unoptimized=("-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG") ;;
    --verify-headers) verify_headers=true ;;
    --no-install) install=false ;;
    --build-only) test=false ;;
    --test-only) build=false ;;
    -h | --help)
        sed -n '2,23s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *) fail "unknown option $1 (see --help)" ;;
    esac
    shift
done
[ ${#presets[@]} -gt 0 ] || presets=(release)

if $install; then
    dependencies=()
    for preset in "${presets[@]}"; do
        case "$preset" in
        mpich) dependencies+=(--mpich) ;;
        release | emulated) dependencies+=(--python) ;;
        debug) dependencies+=(--sanitizers --python) ;;
        esac
    done
    say "checking packages"
    scripts/install-deps.sh "${dependencies[@]}"
fi

$build || $test || fail "--build-only and --test-only leave nothing to do"

count() { sed -n "s/.*[[:space:]]$1=\"\([0-9]*\)\".*/\1/p" "$2" | head -n 1; }

# The reasons of skipped tests, except for those that other numbers of ranks run: results in the form of JUnit.
reasons() { sed -n -e '/: Skipped$/{n;p}' -e 's/^SKIPPED \[[0-9]*\] [^ ]*: //p' "$@" | grep -Ev 'rank|peer|nodes?$|one buffer|received|build has (a|one)|there is a device' || true; }

# hint REGEX WHAT HOW: how to have the skipped tests whose reasons match; takes these from $skips.
hint() {
    local count
    count=$(grep -Ec "$1" <<<"$skips" || true)
    [ "$count" -eq 0 ] || printf '  %3d  %s: %s\n' "$count" "$2" "$3"
    skips=$(grep -Ev "$1" <<<"$skips" || true)
}

# tell_skipped JUNIT...: what the tests left out, and how to have it.
tell_skipped() {
    local skips
    skips=$(reasons "$@")
    [ -n "$skips" ] || return 0
    say "skipped on all numbers of ranks, and how to have it"
    hint 'device|kernels|GPU|host code' "for a device" "scripts/test.sh --preset emulated, or --preset cuda with a GPU"
    hint 'DNDS_DEBUG_CHECKS|debug checks|sanitizer' "for checked builds" "scripts/test.sh --preset debug"
    hint 'HDF5|NetCDF|CGNS' "for libraries" "scripts/install-deps.sh, then configure anew"
    hint 'not there|not here|^no |has no ' "for public meshes and fields" "the folder ../shared/meshes"
    sort <<<"$skips" | uniq -c | sed -n '/[^ 0-9]/s/^ \{4\}//p'
}

# build_preset NAME: configures, and compiles what was asked for.
build_preset() {
    local preset=$1 directory=build/$1 join=("-DDNDS_FAST_COMPILE=$fast_compile")
    # Nobody has objects in a new folder that another way of compiling would throw away.
    if [ "$preset$fast_compile" = releaseOFF ]; then
        join=()
        [ -e "$directory/CMakeCache.txt" ] || join=(-DDNDS_FAST_COMPILE=ON)
    fi
    # What --unoptimized left in the cache is not for this call.
    local flags=("${unoptimized[@]}")
    if [ ${#flags[@]} -eq 0 ] && grep -qs '^CMAKE_CXX_FLAGS_RELEASE:[A-Z]*=-O1 -DNDEBUG$' "$directory/CMakeCache.txt"; then
        flags=(-UCMAKE_CXX_FLAGS_RELEASE)
    fi
    say "$preset: configuring"
    mkdir -p "$directory"
    local log=$directory/configure.log
    if ! cmake --preset "$preset" "${flags[@]}" -DDNDS_WARNINGS_AS_ERRORS=$werror "${join[@]}" \
        -DDNDS_BUILD_TESTS=ON -DDNDS_BUILD_CASES=ON "-DDNDS_CCACHE=${DNDS_CCACHE:-OFF}" \
        >"$log" 2>&1; then
        cat "$log"
        fail "$preset could not be configured"
    fi
    grep -E '^-- DNDS' "$log" || true

    say "$preset: building in $directory with $jobs jobs"
    cmake --build --preset "$preset" --parallel "$jobs" "${build_options[@]}" || fail "$preset could not be built"
    if $verify_headers; then
        say "$preset: compiling every public header by itself"
        cmake --build --preset "$preset" --parallel "$jobs" --target verify_headers ||
            fail "a header does not compile by itself"
    fi
}

passed=0 failed=0 skipped=0
results=()
broken=()
for preset in "${presets[@]}"; do
    ! $build || build_preset "$preset"
    $test || continue

    say "$preset: testing"
    result=$PWD/build/$preset/junit.xml
    rm -f "$result"
    # Brief: of a program that failed, only what failed is printed. More at a time than there are processors: most tests wait
    # (dnds_slots).
    GTEST_BRIEF=1 ctest --preset "$preset" --parallel $((jobs * 5 / 2)) "${ctest_options[@]}" --output-junit "$result" </dev/null ||
        broken+=("$preset")
    [ -s "$result" ] || fail "$preset: no test ran"
    results+=("$result")
    total=$(count tests "$result") bad=$(count failures "$result")
    idle=$(($(count skipped "$result") + $(count disabled "$result")))
    passed=$((passed + total - bad - idle)) failed=$((failed + bad)) skipped=$((skipped + idle))
done
$test || exit 0

[ ${#broken[@]} -eq 0 ] || say "tests failed in: ${broken[*]}"
tell_skipped "${results[@]}"
[ "$skipped" -eq 0 ] || echo "$skipped skipped"
echo "$passed passed, $failed failed"
[ ${#broken[@]} -eq 0 ] && [ "$failed" -eq 0 ]
