#!/usr/bin/env python3
"""Draws the picture of docs/first_solver.md from what its program wrote. Needs h5py and matplotlib.

mpiexec -n 4 advection result.vtkhdf
python3 docs/figures/advection.py result.vtkhdf docs/figures/advection.png
"""

import pathlib
import sys

import h5py
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import PolyCollection

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "cases/euler"))
from plot import STYLE, LineCollection, part_outlines, polygons  # noqa: E402


def read_steps(path):
    """The mesh, and the field u at each time."""
    with h5py.File(path) as file:
        mesh = file["VTKHDF"]
        cells = len(mesh["Types"])
        field = {
            "points": mesh["Points"][:, :2],
            "connectivity": mesh["Connectivity"][:],
            "offsets": mesh["Offsets"][: cells + 1],
            "rank": mesh["CellData/rank"][-cells:].astype(int),
        }
        times = mesh["Steps/Values"][:]
        return field, times, np.split(mesh["CellData/u"][:], len(times))


def main():
    field, times, values = read_steps(sys.argv[1])
    plt.rcParams.update(STYLE)
    figure, all_axes = plt.subplots(1, len(times), figsize=(2.6 * len(times), 2.9), sharey=True, layout="constrained")
    for axes, time, u in zip(all_axes, times, values, strict=True):
        cells = PolyCollection(
            polygons(field), array=u, cmap="cividis", clim=(0, 1), edgecolors="none", antialiased=False
        )
        axes.add_collection(cells)
        axes.add_collection(LineCollection(part_outlines(field), colors="white", linewidths=0.9))
        axes.set(title=f"time {time:.2f}", xlabel="x", aspect="equal", xlim=(0, 1), ylim=(0, 1), xticks=(0, 0.5, 1))
        axes.grid(False)
    all_axes[0].set(ylabel="y", yticks=(0, 0.5, 1))
    bar = figure.colorbar(cells, ax=all_axes, label="u", shrink=0.8, pad=0.01)
    bar.outline.set_visible(False)
    figure.savefig(sys.argv[2], dpi=120)


if __name__ == "__main__":
    main()
