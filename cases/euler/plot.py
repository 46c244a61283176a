#!/usr/bin/env python3
"""Draws what euler wrote: the residual and the forces by step, the pressure on walls, and the pressure field.

    plot.py FOLDER PICTURE [--reference CSV] [--zoom X0 X1 Y0 Y1]

FOLDER is the output folder of a run. --reference adds the wall pressure of a solution of SU2 (node values with the
columns x, y and Pressure), drawn where its nodes lie on the walls. The field needs h5py and a mesh in two dimensions.
"""

import argparse
import csv
import pathlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import PolyCollection

BLUE, ORANGE, INK = "#3b6fb6", "#e0803a", "#22262b"


def read_columns(path):
    """The columns of a table with a heading: numbers where all entries are."""
    with open(path, newline="") as file:
        rows = list(csv.reader(file, skipinitialspace=True))
    columns = {}
    for k, name in enumerate(rows[0]):
        values = [row[k] for row in rows[1:]]
        try:
            columns[name] = np.array(values, dtype=float)
        except ValueError:
            columns[name] = np.array(values)
    return columns


def read_field(path):
    """Corners of cells and their pressure at the last time; None without h5py, or for cells that are no surface."""
    try:
        import h5py
    except ImportError:
        return None
    with h5py.File(path) as file:
        mesh = file["VTKHDF"]
        points = mesh["Points"][:]
        connectivity, offsets, types = mesh["Connectivity"][:], mesh["Offsets"][:], mesh["Types"][:]
        cells = len(types)
        pressure = mesh["CellData/pressure"][-cells:]
    if not np.isin(types, [5, 7, 9]).all():
        return None
    corners = [points[connectivity[a:b], :2] for a, b in zip(offsets[:cells], offsets[1 : cells + 1], strict=True)]
    return corners, pressure


def draw_history(axes, history):
    """The residual of mass on the left scale, forces on the right one."""
    residual = history["density"]
    axes.semilogy(history["step"], residual / residual[0], color=INK)
    axes.set(title="residual of mass", xlabel="step", ylabel="share of the first")
    forces = axes.twinx()
    for name, color in (("lift", BLUE), ("drag", ORANGE)):
        if np.any(history[name] != 0):
            forces.plot(history["step"], history[name], color=color, label=f"{name} {history[name][-1]:.5f}")
    if forces.lines:
        forces.set_ylabel("coefficients")
        forces.legend(frameon=False)


def reference_on_walls(surface, path):
    """x and the pressure coefficient of the reference's nodes next to wall faces."""
    reference = read_columns(path)
    wall = np.column_stack([surface["x"], surface["y"]])
    distance = np.hypot(wall[:, None, 0] - wall[:, 0], wall[:, None, 1] - wall[:, 1])
    np.fill_diagonal(distance, np.inf)
    size = distance.min(axis=1)
    near = []
    for i, (x, y) in enumerate(zip(reference["x"], reference["y"], strict=True)):
        away = np.hypot(wall[:, 0] - x, wall[:, 1] - y)
        face = away.argmin()
        if away[face] < 0.6 * size[face]:
            near.append(i)
    # The same scale as the run's: two numbers of each face tell it.
    slope, offset = np.polyfit(surface["pressure"], surface["pressureCoefficient"], 1)
    return reference["x"][near], slope * reference["Pressure"][near] + offset


def draw_surface(axes, surface, reference):
    axes.plot(surface["x"], surface["pressureCoefficient"], ".", markersize=4, color=BLUE, label="faces of walls")
    if reference is not None:
        x, pressure = reference_on_walls(surface, reference)
        axes.plot(x, pressure, "+", markersize=4, color=ORANGE, label="reference")
        axes.legend(frameon=False)
    axes.invert_yaxis()
    axes.set(title="pressure on walls", xlabel="x", ylabel="pressure coefficient")


def draw_field(figure, axes, field, zoom):
    corners, pressure = field
    cells = PolyCollection(corners, array=pressure, cmap="viridis", edgecolors="face", linewidths=0.1)
    axes.add_collection(cells)
    axes.set(title="pressure", xlabel="x", ylabel="y")
    axes.autoscale()
    if zoom:
        axes.set(xlim=zoom[:2], ylim=zoom[2:])
        inside = [(c[:, 0].mean() - zoom[0]) * (c[:, 0].mean() - zoom[1]) < 0 for c in corners]
        cells.set_clim(pressure[inside].min(), pressure[inside].max())
    axes.set_aspect("equal")
    figure.colorbar(cells, ax=axes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("picture", type=pathlib.Path)
    parser.add_argument("--reference", type=pathlib.Path)
    parser.add_argument("--zoom", type=float, nargs=4, metavar=("X0", "X1", "Y0", "Y1"))
    arguments = parser.parse_args()

    surface = read_columns(arguments.folder / "surface.csv")
    fields = arguments.folder / "fields.vtkhdf"
    field = read_field(fields) if fields.exists() else None
    panels = 1 + (len(surface["x"]) > 0) + (field is not None)
    figure, axes = plt.subplots(1, panels, figsize=(6 * panels, 5), dpi=120, layout="constrained", squeeze=False)
    remaining = list(axes[0])
    if field is not None:
        draw_field(figure, remaining.pop(0), field, arguments.zoom)
    if len(surface["x"]) > 0:
        draw_surface(remaining.pop(0), surface, arguments.reference)
    draw_history(remaining.pop(0), read_columns(arguments.folder / "history.csv"))
    figure.savefig(arguments.picture)
    if field is None:
        print("no pressure field: it needs fields.vtkhdf of a mesh in two dimensions, and h5py")


if __name__ == "__main__":
    main()
