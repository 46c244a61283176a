#!/usr/bin/env bash
# Writes a checkpoint with several ranks and runs the Python code of docs/guides/checkpoints.md on it.
#
#   h5py_snippet.sh DOCUMENT COMMAND...    COMMAND writes the checkpoint named by its last argument
#
# Ends with 77, a skipped test, where there is no Python with h5py; with 1 where CI=true.
set -euo pipefail
document=$1
shift
python=$("$(dirname "$0")/../../../scripts/find-python.sh" h5py) ||
    exit "$([ "${CI:-}" = true ] && echo 1 || echo 77)"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$@" "$folder/checkpoint.h5"
head -c 4096 "$folder/checkpoint.h5" | head -n 1 | grep -qx 'DNDS checkpoint 1'
{
    echo "import sys; path = sys.argv[1]"
    # shellcheck disable=SC2016
    sed -n '/^```python/,/^```/p' "$document" | sed '/^```/d'
} >"$folder/snippet.py"
"$python" "$folder/snippet.py" "$folder/checkpoint.h5" | tee "$folder/output"
grep -q 'array state: float64\[8\] x 5, 1000 rows in' "$folder/output"
grep -q 'state: row 0 is \[0. *0.5 *1. *1.5 *2. *\]' "$folder/output"
grep -q 'links: row 0 is \[7\]' "$folder/output"
