#!/usr/bin/env bash
# Runs COMMAND (mpiexec ... dnds-doctor on two ranks) under made-up faults, and checks its messages.
#
#   doctor_test.sh COMMAND...
set -uo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

# check NAME CODE PATTERN...: whether the last run ended with CODE (any: 0, 1 or 2) and printed each pattern.
check() {
    local name=$1 expected=$2 pattern
    shift 2
    if [ "$expected" = any ]; then
        [ "$code" -le 2 ] || { echo "$name: ended with $code"; failed=1; }
    elif [ "$code" != "$expected" ]; then
        echo "$name: ended with $code instead of $expected"
        failed=1
    fi
    for pattern in "$@"; do
        grep -qE -- "$pattern" "$folder/out" || { echo "$name: no '$pattern' in"; cat "$folder/out"; failed=1; }
    done
}

command=("$@" --folder "$folder" --megabytes 4)

"${command[@]}" --json "$folder/report.json" >"$folder/out" 2>&1
code=$?
check "no fault" any "^ +0 +1 .*[0-9]" "fine +2 ranks on 1 machine" "ranks map each other's memory" \
    "node-shared .* node-shared$" "ranks together write"
python3 - "$folder/report.json" "$code" <<'END' || failed=1
import json, sys
report = json.load(open(sys.argv[1]))
assert report["exit_code"] == int(sys.argv[2]), report["exit_code"]
assert report["exit_code"] == max(finding["level"] for finding in report["findings"])
assert all(finding["cure"] for finding in report["findings"] if finding["level"] == 2)
assert len(report["ranks"]) == 2 and len(report["pairs"]) == 1 and len(report["files"]) == 2
assert all(pull["wrong"] == 0 for pull in report["pulls"])
assert all(pull["by_hand_microseconds"] > 0 for pull in report["pulls"] if not pull["device"])
END

# The picture, where there is Matplotlib.
here=$(cd "$(dirname "$0")" && pwd)
if python=$("$here/../../scripts/find-python.sh" matplotlib 2>/dev/null); then
    "$python" "$here/plot.py" "$folder/report.json" "$folder/report.png" || failed=1
    [ -s "$folder/report.png" ] || failed=1
fi

if [ "$(nproc)" -gt 1 ]; then
    taskset -c "$(taskset -pc $$ | sed 's/.*: *//; s/[-,].*//')" "${command[@]}" >"$folder/out" 2>&1
    code=$?
    check "one processor" 2 "ERROR .*ranks 0, 1 are bound to 1 processor" "bind-to core"
fi

DNDS_RANKS_PER_NODE=1 OMPI_MCA_osc=^rdma "${command[@]}" >"$folder/out" 2>&1
code=$?
check "virtual nodes" any "warning .*DNDS_RANKS_PER_NODE=1" "unset DNDS_RANKS_PER_NODE"

(ulimit -v 8000000 && "${command[@]}" >"$folder/out" 2>&1)
code=$?
check "address space" any "warning .*address space of rank 0 ends at 7812 MiB" "ulimit -v unlimited"

(ulimit -f 16384 && "$@" --folder "$folder" --megabytes 32 >"$folder/out" 2>&1)
code=$?
check "file size" 2 "ERROR .*cannot write 32 MiB into .*: File too large" "ulimit -f"

"$@" --folder "$folder/missing" >"$folder/out" 2>&1
code=$?
check "no folder" 2 "ERROR .*cannot make a file in .*missing: No such file" "a folder that all machines have"

(ulimit -n 100 && "${command[@]}" >"$folder/out" 2>&1)
code=$?
check "few descriptors" any "warning .*rank 0 may have 100 files and connections" "ulimit -n 1024"

for size in -1 0 1048577; do
    "$@" --folder "$folder" --megabytes "$size" >"$folder/out" 2>&1
    code=$?
    check "--megabytes $size" 2 "--megabytes: .*$size.* in range"
done

# A full disk, where this user may mount one.
mkdir "$folder/full"
# shellcheck disable=SC2016 # expanded by the inner shell
if unshare -m sh -c 'mount -t tmpfs -o size=1m none "$1"' sh "$folder/full" 2>/dev/null; then
    # shellcheck disable=SC2016
    unshare -m sh -c 'mount -t tmpfs -o size=1m none "$1" && shift && exec "$@"' sh "$folder/full" \
        "$@" --folder "$folder/full" --megabytes 4 >"$folder/out" 2>&1
    code=$?
    check "full disk" 2 "ERROR .*cannot write 4 MiB into .*full: No space left"
fi

"$@" --json "$folder/missing/report.json" --folder "$folder" --megabytes 1 >"$folder/out" 2>&1
code=$?
check "a report that cannot be written" 2 "report.json' .--json. cannot be written: No such file"
if grep -q "latency us" "$folder/out"; then
    echo "a report that cannot be written: measured before it said so"
    failed=1
fi

"$@" --nonsense >"$folder/out" 2>&1
code=$?
check "an option that there is not" 2 "nonsense"
exit $failed
