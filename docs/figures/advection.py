#!/usr/bin/env python3
"""Draws the picture of docs/start/first_solver.md from what its program wrote. Needs h5py and matplotlib.

scripts/mpirun.sh 4 build/release/docs/advection result.vtkhdf
python3 docs/figures/advection.py result.vtkhdf docs/figures/advection.png
"""

import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.collections import LineCollection

# The drawing of the package dnds, from its sources: it needs no compiled module.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python/dnds"))
from plotting import STYLE, VtkContent, draw_cells


def main():
    times = VtkContent(sys.argv[1]).times
    plt.rcParams.update(STYLE)
    figure, all_axes = plt.subplots(1, len(times), figsize=(2.6 * len(times), 2.9), sharey=True, layout="constrained")
    for step, axes in enumerate(all_axes):
        content = VtkContent(sys.argv[1], step)
        cells = draw_cells(axes, content, content.fields["u"], cmap="cividis", clim=(0, 1))
        parts = content.edges_between(content.fields["rank"].astype(int))[:, :, :2]
        axes.add_collection(LineCollection(parts, colors="white", linewidths=0.9))
        axes.set(title=f"time {times[step]:.2f}", ylabel="", xlim=(0, 1), ylim=(0, 1), xticks=(0, 0.5, 1))
    all_axes[0].set(ylabel="y", yticks=(0, 0.5, 1))
    bar = figure.colorbar(cells, ax=all_axes, label="u", shrink=0.8, pad=0.01)
    bar.outline.set_visible(False)
    figure.savefig(sys.argv[2], dpi=120)


if __name__ == "__main__":
    main()
