#!/usr/bin/env python3
"""Draws what diffusion_map wrote: the map before and after, and the parts of the ranks.

    plot.py MAPS.nc [--output FOLDER]

Prints the paths of before.png, after.png and ranks.png.
"""

import argparse
import pathlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from matplotlib.colors import BoundaryNorm, ListedColormap  # noqa: E402
from netCDF4 import Dataset  # noqa: E402

WALL = "#b9b4a8"
PALETTE = ["#3b6fb6", "#e0803a", "#3f9b6a", "#a0559c", "#b8a13a", "#4fa8b8", "#c9526a", "#7a6a5d"]


def edges(centers, limit=None):
    """The ends of cells around points: half-way between them, clipped to +-limit."""
    middle = (centers[1:] + centers[:-1]) / 2
    ends = np.concatenate([[2 * centers[0] - middle[0]], middle, [2 * centers[-1] - middle[-1]]])
    return ends if limit is None else np.clip(ends, -limit, limit)


def draw(path, title, label, longitudes, latitudes, values, **colors):
    figure, axes = plt.subplots(figsize=(9, 4.8), layout="constrained")
    axes.set_facecolor(WALL)
    drawn = axes.pcolormesh(edges(longitudes), edges(latitudes, 90), np.ma.masked_invalid(values), rasterized=True,
                            **colors)
    axes.set_title(title)
    axes.set_xlabel("longitude (degrees east)")
    axes.set_ylabel("latitude (degrees north)")
    axes.set_aspect("equal")
    bar = figure.colorbar(drawn, ax=axes, shrink=0.85)
    bar.set_label(label)
    figure.savefig(path, dpi=140)
    plt.close(figure)
    print(path)
    return bar


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("maps", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path, help="folder for the pictures; beside the maps unless given")
    options = parser.parse_args()
    folder = options.output or options.maps.parent
    folder.mkdir(parents=True, exist_ok=True)
    with Dataset(options.maps) as file:
        longitudes, latitudes = file["longitude"][:].data, file["latitude"][:].data
        before, after = (np.ma.filled(file[name][:], np.nan) for name in ("before", "after"))
        rank = np.asarray(file["rank"][:])
        titles = {name: file[name].long_name for name in ("before", "after")}
        units = getattr(file["before"], "units", "")
    limits = {"vmin": np.nanmin(before), "vmax": np.nanmax(before)}  # the same colours for both
    draw(folder / "before.png", titles["before"], units, longitudes, latitudes, before, **limits)
    draw(folder / "after.png", titles["after"], units, longitudes, latitudes, after, **limits)
    ranks = rank.max() + 1
    colors = ListedColormap([PALETTE[r % len(PALETTE)] for r in range(ranks)])
    draw(folder / "ranks.png", f"cells of {ranks} ranks", "rank", longitudes, latitudes,
         np.where(np.isnan(after), np.nan, rank), cmap=colors, norm=BoundaryNorm(np.arange(ranks + 1) - 0.5, ranks))


if __name__ == "__main__":
    main()
