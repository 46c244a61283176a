#!/usr/bin/env python3
"""Draws what `dnds-mesh partition --output FOLDER` wrote: how even the parts are, and who reads from whom.

    plot.py FOLDER PICTURE

FOLDER holds parts.csv and links.csv.
"""

import argparse
import pathlib

import matplotlib.pyplot as plt
import numpy as np

INK = "#22262b"
OWNED = "#3b6fb6"
GHOST = "#e0803a"
PEER = "#3f9b6a"


def read_table(path):
    """The columns of a table by name; empty where the table has no rows."""
    with open(path, encoding="utf-8") as file:
        names = file.readline().strip().split(",")
        rows = [[int(word) for word in line.split(",")] for line in file]
    columns = np.array(rows, dtype=np.int64).reshape(-1, len(names)).T
    return dict(zip(names, columns, strict=True))


def draw_bars(axes, title, parts, values, color, below=None):
    """One bar a part; `below` is drawn as its lower piece."""
    width = 0.82 if len(parts) <= 64 else 1.0
    if below is not None:
        axes.bar(parts, below, width, color=OWNED)
    axes.bar(parts, values, width, bottom=below, color=color)
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold", color=INK)
    axes.set_xlim(-0.6, len(parts) - 0.4)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.tick_params(labelsize=9, length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="y", color="#e3e6ea", linewidth=0.8)
    axes.set_axisbelow(True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("picture", type=pathlib.Path)
    arguments = parser.parse_args()

    table = read_table(arguments.folder / "parts.csv")
    links = read_table(arguments.folder / "links.csv")
    count = len(table["part"])
    ghosts = np.zeros((count, count))
    ghosts[links["part"], links["other"]] = links["ghosts"]

    figure = plt.figure(figsize=(13.5, 6.6), dpi=150, facecolor="white")
    grid = figure.add_gridspec(
        3, 2, width_ratios=[1.25, 1], left=0.06, right=0.965, top=0.85, bottom=0.075, wspace=0.16, hspace=0.5
    )
    average = table["cells"].mean()
    axes = figure.add_subplot(grid[0, 0])
    draw_bars(axes, "cells (blue) and ghosts (orange)", table["part"], table["ghosts"], GHOST, table["cells"])
    axes.axhline(average, color=INK, linewidth=0.9, linestyle=":")
    draw_bars(figure.add_subplot(grid[1, 0]), "faces shared with other parts", table["part"], table["faces"], GHOST)
    axes = figure.add_subplot(grid[2, 0])
    draw_bars(axes, "peers", table["part"], table["peers"], PEER)
    axes.set_xlabel("part", fontsize=9)

    axes = figure.add_subplot(grid[:, 1])
    shown = axes.imshow(np.ma.masked_equal(ghosts, 0), cmap="viridis_r", interpolation="nearest")
    axes.set_title("ghosts of a part (row) by owner (column)", loc="left", fontsize=11, fontweight="bold", color=INK)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.tick_params(labelsize=9, length=0)
    figure.colorbar(shown, ax=axes, fraction=0.046, pad=0.03)

    weight = table["weight"]
    imbalance = 100 * (weight.max() / weight.mean() - 1) if average > 0 else 0
    name = "largest" if (weight == table["cells"]).all() else "heaviest"
    figure.suptitle(
        f"{table['cells'].sum():,} cells in {count} parts: {table['faces'].sum() // 2:,} faces cut, "
        f"{name} part {imbalance:.1f} % above average",
        x=0.02, y=0.955, ha="left", fontsize=15, fontweight="bold", color=INK,
    )
    figure.savefig(arguments.picture)


if __name__ == "__main__":
    main()
