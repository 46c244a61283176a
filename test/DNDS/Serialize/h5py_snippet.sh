#!/usr/bin/env bash
# Writes a checkpoint with several ranks and runs the Python code of docs/checkpoints.md on it.
#
#   h5py_snippet.sh DOCUMENT COMMAND...    COMMAND writes the checkpoint named by its last argument
set -euo pipefail
document=$1
shift
python=""
for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import h5py' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "skipped: no Python with h5py"
    exit 77
fi
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
