#!/usr/bin/env bash
# Runs PROGRAM (diffusion_map) on a map of the earth, with walls, on 1 and 4 ranks: both write the same bits. Then plot.py
# draws them.
#
#   map_test.sh PROGRAM MPIEXEC... NUMPROC_FLAG
#
# Ends with 77, a skipped test, without such a file, or without a Python that draws (with 1 where CI=true).
set -euo pipefail
case=$(cd "$(dirname "$0")" && pwd)
program=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

for ranks in 1 4; do
    "$@" "$ranks" "$program" --variable u --at level=1 --valid -4 30 --radius 400 --quiet \
        --output "$folder/$ranks.nc" | tee "$folder/$ranks.txt" # 77 if there is no file
    grep -q "integral .* (rounding)" "$folder/$ranks.txt"
done

if "$@" 2 "$program" --variable u --at level=1 --valid 1000 2000 --quiet --output "$folder/none.nc" >"$folder/none.txt" 2>&1; then
    echo "a map of walls alone is no error"
    exit 1
fi
grep -q "every value of u is missing or outside of --valid 1000 2000" "$folder/none.txt"

python=$("$case/../../scripts/find-python.sh" matplotlib netCDF4 numpy) || exit "$([ "${CI:-}" = true ] && echo 1 || echo 77)"
"$python" - "$folder/1.nc" "$folder/4.nc" <<'CHECK'
import sys

import netCDF4
import numpy as np

one, four = (netCDF4.Dataset(path) for path in sys.argv[1:])
for file in (one, four):
    file.set_auto_mask(False)
for name in ("before", "after", "latitude", "longitude"):
    assert np.array_equal(one[name][:], four[name][:], equal_nan=True), f"{name} depends on the number of ranks"
assert one["after"].dimensions == ("latitude", "longitude") and one["after"].shape == (241, 480)
assert set(np.unique(four["rank"][:])) == {0, 1, 2, 3} and not one["rank"][:].any()
before, after = one["before"][:], one["after"][:]
walls = np.isnan(before)
assert 0 < walls.sum() < walls.size / 2 and (np.isnan(after) == walls).all(), "walls stay"
inside = before[~walls]
assert inside.min() >= -4 and inside.max() <= 30
assert after[~walls].std() < 0.99 * inside.std(), "it spreads"
edges = np.clip(np.concatenate([[90], (one["latitude"][1:] + one["latitude"][:-1]) / 2, [-90]]), -90, 90)
area = -np.diff(np.sin(np.radians(edges)))[:, None] * np.ones(480)
kept = [(np.where(walls, 0, values) * area).sum() for values in (before, after)]
assert abs(kept[0] - kept[1]) < 1e-10 * abs(kept[0]), kept
CHECK
"$python" "$case/plot.py" "$folder/4.nc" --output "$folder/pictures" | tee "$folder/printed"
for picture in before after ranks; do
    grep -qx "$folder/pictures/$picture.png" "$folder/printed"
    [ "$(head -c 4 "$folder/pictures/$picture.png" | tail -c 3)" = PNG ]
    [ "$(stat -c %s "$folder/pictures/$picture.png")" -gt 15000 ]
done
