#!/usr/bin/env python3
"""Draws what sparse_advection wrote: which blocks were there when, and on which ranks; memory and messages beside the
dense run; and the load of the busiest rank.

    plot.py RUN.json [--fixed RUN.json] [--output FOLDER]

Prints the paths of blocks.png, memory.png and, of more than one rank, owners.png and busiest.png.
"""

import argparse
import json
import pathlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402

PALETTE = ["#3b6fb6", "#e0803a", "#3f9b6a", "#a0559c"]


def save(figure, path):
    figure.savefig(path, dpi=140)
    plt.close(figure)
    print(path)


def figure_for(pictures):
    """A figure with an axis for each picture, at most three beside each other."""
    columns = min(3, len(pictures))
    rows = -(-len(pictures) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(3.4 * columns, 3.5 * rows), layout="constrained", squeeze=False)
    for axis in axes.flat[len(pictures) :]:
        axis.remove()
    return figure, axes


def draw_blocks(run, path):
    """Blocks seen along the last dimension: the darker, the more behind each other."""
    pictures = run["pictures"]
    figure, axes = figure_for(pictures)
    for axis, picture in zip(axes.flat, pictures, strict=False):
        for corners, color, name in zip(picture["corners"], PALETTE, run["species"], strict=False):
            count = np.zeros((run["blocks"], run["blocks"]))
            at = np.asarray(corners, dtype=int).reshape(-1, 3) // run["cells"]
            np.add.at(count, (at[:, 0], at[:, 1]), 1)
            layer = np.zeros((*count.shape, 4))
            layer[..., :3] = matplotlib.colors.to_rgb(color)
            layer[..., 3] = 0.75 * count / run["blocks"] + 0.2 * (count > 0)
            axis.imshow(layer.transpose(1, 0, 2), origin="lower", extent=(0, 1, 0, 1))
            axis.plot([], [], "s", color=color, label=name)
        axis.set_title(f"step {picture['step']}", fontsize=10)
        axis.set_xticks(np.linspace(0, 1, run["blocks"] + 1), labels=[])
        axis.set_yticks(np.linspace(0, 1, run["blocks"] + 1), labels=[])
        axis.grid(color="#dddddd", linewidth=0.4)
    axes.flat[0].legend(loc="upper right", fontsize=8)
    figure.suptitle(f"Allocated blocks of {run['blocks']}$^3$, seen along one direction")
    save(figure, path)


def draw_memory(run, path):
    steps = [s["step"] for s in run["steps"]]
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    titles = {"memory": "memory of blocks and messages", "bytes": "sent in an exchange"}
    for axis, (what, title) in zip(axes, titles.items(), strict=True):
        axis.plot(steps, [s[what] / 1e6 for s in run["steps"]], color=PALETTE[0], label="sparse")
        if "dense" in run:
            axis.axhline(run["dense"][what] / 1e6, color=PALETTE[1], label="dense")
        axis.set_title(title)
        axis.set_xlabel("step")
        axis.set_ylabel("MB, all ranks")
        axis.set_ylim(bottom=0)
        axis.legend()
    save(figure, path)


def draw_owners(run, path):
    """The ranks of the blocks in the layer in the middle, and which of them hold something."""
    pictures, layer, cells = run["pictures"], run["blocks"] // 2, run["cells"]
    figure, axes = figure_for(pictures)
    for axis, picture in zip(axes.flat, pictures, strict=False):
        owners = np.asarray(picture["owners"])
        owners = owners[owners[:, 2] // cells == layer]
        ranks = np.zeros((run["blocks"], run["blocks"]), dtype=int)
        ranks[owners[:, 0] // cells, owners[:, 1] // cells] = owners[:, 3]
        shown = axis.imshow(ranks.T, origin="lower", cmap="Pastel1", vmin=0, vmax=max(8, run["ranks"] - 1))
        for corners, color in zip(picture["corners"], PALETTE, strict=False):
            at = np.asarray(corners, dtype=int).reshape(-1, 3) // cells
            at = at[at[:, 2] == layer]
            axis.plot(at[:, 0], at[:, 1], "o", color=color, markersize=4)
        axis.set_title(f"step {picture['step']}", fontsize=10)
        axis.set_xticks([])
        axis.set_yticks([])
    handles = [
        plt.Line2D([], [], marker="s", linestyle="", color=shown.cmap(shown.norm(rank)), label=f"rank {rank}")
        for rank in range(run["ranks"])
    ]
    axes.flat[0].legend(handles=handles, loc="upper right", fontsize=8)
    figure.suptitle("Ranks of the blocks in the layer in the middle; dots: blocks that hold something")
    save(figure, path)


def draw_busiest(run, fixed, path):
    figure, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
    for of, color, label in ((fixed, PALETTE[1], "blocks stay"), (run, PALETTE[0], "blocks move")):
        if of:
            axis.plot([s["step"] for s in of["steps"]], [s["busiest"] for s in of["steps"]], color=color, label=label)
    axis.set_xlabel("step")
    axis.set_ylabel("allocated blocks, over the mean")
    axis.set_title(f"The busiest of {run['ranks']} ranks")
    axis.set_ylim(bottom=1)
    if fixed:
        axis.legend()
    save(figure, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("--fixed", type=pathlib.Path, help="the output of a run with --no-balance, for comparison")
    parser.add_argument("--output", type=pathlib.Path, help="folder for the pictures; beside the run unless given")
    options = parser.parse_args()
    folder = options.output or options.run.parent
    folder.mkdir(parents=True, exist_ok=True)
    run = json.loads(options.run.read_text())
    draw_blocks(run, folder / "blocks.png")
    draw_memory(run, folder / "memory.png")
    if run["ranks"] > 1:
        draw_owners(run, folder / "owners.png")
        draw_busiest(run, options.fixed and json.loads(options.fixed.read_text()), folder / "busiest.png")


if __name__ == "__main__":
    main()
