#!/usr/bin/env bash
# Runs PROGRAM (sparse_advection) on 1 and 4 ranks: blocks come and go in the same steps, and masses have the same bits.
# Then plot.py draws them.
#
#   advection_test.sh PROGRAM MPIEXEC... NUMPROC_FLAG
#
# Ends with 77, a skipped test, where there is no Python that draws (with 1 where CI=true).
set -euo pipefail
case=$(cd "$(dirname "$0")" && pwd)
program=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

for ranks in 1 4; do
    "$@" "$ranks" "$program" --blocks 6 --cells 4 --periods 0.5 --dense --output "$folder/$ranks.json" |
        tee "$folder/$ranks.txt"
done
diff <(grep mass "$folder/1.txt") <(grep mass "$folder/4.txt")
diff <(grep "blocks came" "$folder/1.txt") <(grep "blocks came" "$folder/4.txt")

python=$("$case/../../scripts/find-python.sh" matplotlib numpy) || exit "$([ "${CI:-}" = true ] && echo 1 || echo 77)"
"$python" - "$folder/1.json" "$folder/4.json" <<'CHECK'
import json
import sys

one, four = (json.load(open(path)) for path in sys.argv[1:])
assert [s["allocated"] for s in one["steps"]] == [s["allocated"] for s in four["steps"]]
assert max(s["allocated"] for s in one["steps"]) < 0.8 * 3 * 6**3
for a, b in zip(one["pictures"], four["pictures"]):
    for mine, other in zip(a["corners"], b["corners"]):
        blocks = [{tuple(c[i : i + 3]) for i in range(0, len(c), 3)} for c in (mine, other)]
        assert blocks[0] == blocks[1], "other blocks are there"
assert one["steps"][-1]["memory"] < one["dense"]["memory"]
assert 0 < four["steps"][-1]["bytes"] < four["dense"]["bytes"]
CHECK
"$python" "$case/plot.py" "$folder/4.json" --output "$folder/pictures" | tee "$folder/printed"
for picture in blocks memory; do
    grep -qx "$folder/pictures/$picture.png" "$folder/printed"
    [ "$(head -c 4 "$folder/pictures/$picture.png" | tail -c 3)" = PNG ]
done
