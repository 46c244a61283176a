#!/usr/bin/env python3
"""Draws what ghost_pull wrote: who owns the mesh, the ghosts of rank 0, and what a pull moves.

    plot.py FOLDER PICTURE

FOLDER holds cells.csv, peers.csv and ranks.csv (ghost_pull --output FOLDER).
"""

import argparse
import pathlib

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.patches import ConnectionPatch, Patch, Rectangle

PALETTE = ["#3b6fb6", "#e0803a", "#3f9b6a", "#a0559c", "#b8a13a", "#4fa8b8", "#c9526a", "#7a6a5d"]
GHOST = "#ffd21f"
INK = "#22262b"


def read_table(path):
    """The columns of a table by name, as numbers; columns that are not numeric come back as NaN."""
    return np.atleast_1d(np.genfromtxt(path, delimiter=",", names=True))


def owner_colors(ranks):
    return np.array([to_rgb(PALETTE[rank % len(PALETTE)]) for rank in range(ranks)])


def shade(base, value):
    """Mixes the owners' colours with white: full colour where the field is 1, pale where it is 0."""
    strength = 0.42 + 0.58 * np.clip(value, 0, 1)
    return 1 - strength[:, None] * (1 - base)


def busiest_spot(center, owner, ghost, ranks, radius):
    """Where rank 0's ghosts are, the spot with cells of most ranks around it, preferably not at the mesh's edge."""
    candidates = center[ghost]
    if len(candidates) == 0:
        return np.array([0.5, 0.5])
    candidates = candidates[:: max(1, len(candidates) // 400)]
    scores = []
    for spot in candidates:
        near = np.abs(center - spot).max(axis=1) < radius
        shares = np.sort(np.bincount(owner[near], minlength=ranks))[::-1] / max(1, near.sum())
        inside = np.all(np.abs(spot - 0.5) < 0.5 - radius)
        scores.append(np.minimum(shares, 0.25).sum() + 0.01 * shares[2:3].sum() + inside)
    return candidates[int(np.argmax(scores))]


def draw_cells(axes, corners, colors, **style):
    axes.add_collection(PolyCollection(corners, facecolors=colors, **style))
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color("#b8bec6")


def draw_bars(axes, title, unit, ranks, parts, colors):
    """Horizontal bars, one a rank; `parts[r]` lists (colour index, length) from left to right."""
    longest = max((sum(length for _, length in row) for row in parts), default=0) or 1
    for rank, row in enumerate(parts):
        left = 0.0
        for color, length in row:
            axes.barh(rank, length, left=left, height=0.62, color=colors[color], edgecolor="white", linewidth=0.8)
            left += length
        axes.text(left + 0.02 * longest, rank, f"{left:.1f}", va="center", fontsize=9, color=INK)
    axes.set_xlim(0, 1.18 * longest)
    axes.set_ylim(ranks - 0.4, -0.6)
    axes.set_yticks(range(ranks), [f"rank {rank}" for rank in range(ranks)])
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold", color=INK)
    axes.set_xlabel(unit, fontsize=9)
    axes.tick_params(labelsize=9, length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="x", color="#e3e6ea", linewidth=0.8)
    axes.set_axisbelow(True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("picture", type=pathlib.Path)
    arguments = parser.parse_args()

    cells = np.loadtxt(arguments.folder / "cells.csv", delimiter=",", skiprows=1, ndmin=2)
    peers = read_table(arguments.folder / "peers.csv")
    stats = read_table(arguments.folder / "ranks.csv")
    corners = cells[:, :6].reshape(-1, 3, 2)
    owner = cells[:, 6].astype(int)
    ghost = cells[:, 7] == 1
    field = cells[:, 8]
    ranks = len(stats)
    base = owner_colors(ranks)

    figure = plt.figure(figsize=(15.6, 6.9), dpi=150, facecolor="white")
    grid = figure.add_gridspec(
        2, 4, width_ratios=[1, 1, 0.06, 0.6], left=0.015, right=0.985, top=0.865, bottom=0.095, wspace=0.07, hspace=0.42
    )
    whole = figure.add_subplot(grid[:, 0])
    zoom = figure.add_subplot(grid[:, 1])

    # Left: the whole mesh, owners by colour, the field by strength.
    colors = shade(base[owner], field)
    draw_cells(whole, corners, colors, antialiaseds=False, linewidths=0)
    outline = 0.3 + 1.2 * min(1, len(cells) / 100000)  # single cells of large meshes are hardly visible
    whole.add_collection(PolyCollection(corners[ghost], facecolors=GHOST, edgecolors=GHOST, linewidths=outline))
    whole.set_xlim(0, 1)
    whole.set_ylim(0, 1)
    title = f"{len(cells):,} cells on {ranks} rank{'s' if ranks > 1 else ''}"
    whole.set_title(title, loc="left", fontsize=13, fontweight="bold", color=INK)
    for rank in np.unique(owner):  # some may have no cell
        middle = corners[owner == rank].mean(axis=(0, 1))
        box = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": base[rank], "linewidth": 1.6}
        whole.text(*middle, f"rank {rank}", ha="center", va="center", fontsize=10, color=INK, bbox=box)

    # Middle: a closer look at the cut, some forty cells across.
    center = corners.mean(axis=1)
    half = min(0.5, 13 * np.sqrt(1.0 / len(cells)))
    spot = np.clip(busiest_spot(center, owner, ghost, ranks, half), half, 1 - half)
    near = np.all(np.abs(center - spot) < 1.3 * half, axis=1)
    draw_cells(zoom, corners[near], colors[near], edgecolors="white", linewidths=0.5)
    draw_cells(zoom, corners[near & ghost], GHOST, edgecolors=INK, linewidths=0.7)
    zoom.set_xlim(spot[0] - half, spot[0] + half)
    zoom.set_ylim(spot[1] - half, spot[1] + half)
    zoom.set_title("where rank 0 reads the cells of others", loc="left", fontsize=13, fontweight="bold", color=INK)
    key = [Patch(facecolor=GHOST, edgecolor=INK, label="ghosts of rank 0")]
    key += [Patch(facecolor=base[rank], label=f"rank {rank}") for rank in np.unique(owner[near])]
    right, top = (center[near & ghost].mean(axis=0) if (near & ghost).any() else spot) < spot
    place = f"{'upper' if top else 'lower'} {'right' if right else 'left'}"  # away from the ghosts
    zoom.legend(handles=key, loc=place, fontsize=9, framealpha=0.95, edgecolor="#b8bec6")
    frame = {"fill": False, "edgecolor": INK, "linewidth": 1.3}
    whole.add_patch(Rectangle(spot - half, 2 * half, 2 * half, zorder=5, **frame))
    for side in (-half, half):
        line = {"coordsA": "data", "coordsB": "data", "axesA": whole, "axesB": zoom, "color": INK, "linewidth": 0.9}
        ends = {"xyA": spot + (half, side), "xyB": spot + (-half, side)}
        whole.add_artist(ConnectionPatch(**ends, **line, alpha=0.6, clip_on=False, zorder=2.5))

    # Right: what a pull moves and what it costs.
    rows = [[(int(p["peer"]), p["bytes"] / 1024) for p in peers if int(p["rank"]) == rank] for rank in range(ranks)]
    draw_bars(figure.add_subplot(grid[0, 3]), "received in a pull, by owner", "KiB", ranks, rows, base)
    rows = [[(rank, stats["microseconds"][rank])] for rank in range(ranks)]
    draw_bars(figure.add_subplot(grid[1, 3]), "time of a pull (median)", "microseconds", ranks, rows, base)

    figure.suptitle(
        "DNDS ghost pull: colour is the owner, strength is the smoothed field",
        x=0.015, y=0.965, ha="left", fontsize=15, fontweight="bold", color=INK,
    )
    figure.savefig(arguments.picture)


if __name__ == "__main__":
    main()
