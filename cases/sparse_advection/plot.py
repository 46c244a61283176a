#!/usr/bin/env python3
"""Draws what sparse_advection wrote: which blocks were there when, and memory and messages beside the dense run.

    plot.py RUN.json [--output FOLDER]

Prints the paths of blocks.png and memory.png.
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


def draw_blocks(run, path):
    """Blocks seen along the last dimension: the darker, the more behind each other."""
    pictures = run["pictures"]
    columns = min(3, len(pictures))
    rows = -(-len(pictures) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(3.4 * columns, 3.5 * rows), layout="constrained", squeeze=False)
    for axis in axes.flat[len(pictures) :]:
        axis.remove()
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path, help="folder for the pictures; beside the run unless given")
    options = parser.parse_args()
    folder = options.output or options.run.parent
    folder.mkdir(parents=True, exist_ok=True)
    run = json.loads(options.run.read_text())
    draw_blocks(run, folder / "blocks.png")
    draw_memory(run, folder / "memory.png")


if __name__ == "__main__":
    main()
