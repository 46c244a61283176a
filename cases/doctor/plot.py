#!/usr/bin/env python3
"""Draws what `dnds-doctor --json FILE` measured: latency and bandwidth between ranks, as matrices.

    plot.py FILE PICTURE
"""

import argparse
import json

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402


def matrix(report, name):
    """The numbers of all pairs, both ways; NaN where none was measured."""
    ranks = len(report["ranks"])
    values = np.full((ranks, ranks), np.nan)
    for pair in report["pairs"]:
        values[pair["from"], pair["to"]] = values[pair["to"], pair["from"]] = pair[name]
    return values


def draw(report, picture):
    figure, panels = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
    for axes, name, title in zip(panels, ("latency_us", "megabytes_per_s"),
                                 ("latency in microseconds", "bandwidth in MB/s"), strict=True):
        values = matrix(report, name)
        # From 0, so that small differences look small.
        image = axes.imshow(values, cmap="Blues", vmin=0, vmax=2 * np.nanmax(values, initial=1e-9))
        axes.set(title=title, xlabel="rank", ylabel="rank")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.yaxis.get_major_locator().set_params(integer=True)
        figure.colorbar(image, ax=axes)
        if len(values) <= 12:
            for row, column in np.argwhere(~np.isnan(values)):
                digits = 1 if name == "latency_us" else 0
                axes.text(column, row, f"{values[row, column]:.{digits}f}", ha="center", va="center", fontsize=8)
    figure.savefig(picture, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="what dnds-doctor --json wrote")
    parser.add_argument("picture", help="PNG, PDF or SVG")
    options = parser.parse_args()
    with open(options.file, encoding="utf-8") as file:
        draw(json.load(file), options.picture)


if __name__ == "__main__":
    main()
