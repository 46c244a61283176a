#!/usr/bin/env python3
"""Draws what euler wrote, one picture each, and prints their paths.

    plot.py FOLDER [--output FOLDER] [--wedge X Y DEGREES] [--reference CSV] [--zoom X0 X1 Y0 Y1] [--range LOW HIGH]
            [--format png|pdf|svg]

field.png    the pressure, and the outlines of the parts that the ranks computed; needs h5py and a flat mesh
parts.png    with "balance": the parts of the ranks at six times
history.png  residuals and force coefficients by step
surface.png  the pressure coefficient on walls; --reference adds a solution of SU2 (node values with the columns x, y
             and Pressure) where its nodes lie on the walls
shock.png    in its place with --wedge: the flow over a compression corner at (X, Y) against the exact oblique shock;
             exact forces are in history.png, too

FOLDER is the output folder of a run. Pictures go there, or to --output. --range sets the ends of the scale of the
pressure, as a share of that far away, in all pictures; pdf and svg are drawings, whose text and lines can be edited.
"""

import argparse
import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

# The drawing of the package dnds, from its sources: it needs no compiled module.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python/dnds"))
from plotting import BLUE, GREEN, INK, ORANGE, STYLE, VtkContent, draw_cells, draw_owners, draw_parts, read_columns

# ----------------------------------------------------------------------------------------------------------------------
# Reading


def read_field(path):
    """The mesh, the pressure and the ranks at the last time. None where there is no h5py or no flat mesh."""
    try:
        field = VtkContent(path)
    except ImportError:
        print("plot.py: h5py is not there: no picture of the field", file=sys.stderr)
        return None
    except ValueError as error:
        print(f"plot.py: no picture of the field: {error}", file=sys.stderr)
        return None
    return field if field.is_flat else None


def centres(field):
    """The mean of each cell's corners."""
    return field.means(field.points)[:, :2]


# ----------------------------------------------------------------------------------------------------------------------
# Exact oblique shock (Anderson, "Modern Compressible Flow", chapter 4)


def shock_angle(mach, deflection, gamma):
    """The angle of the weak attached shock that turns a flow, in radians; None where the shock is detached."""

    def turning(beta):
        normal = (mach * np.sin(beta)) ** 2
        return np.arctan(2 / np.tan(beta) * (normal - 1) / (mach**2 * (gamma + np.cos(2 * beta)) + 2))

    betas = np.linspace(np.arcsin(1 / mach), np.pi / 2, 2001)
    largest = betas[np.argmax(turning(betas))]
    low, high = betas[0], largest
    if turning(high) < deflection:
        return None
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if turning(middle) < deflection else (low, middle)
    return low


def pressure_ratio(mach, beta, gamma):
    """Of the pressures behind and before a shock."""
    return 1 + 2 * gamma / (gamma + 1) * ((mach * np.sin(beta)) ** 2 - 1)


# ----------------------------------------------------------------------------------------------------------------------
# Drawing. Each function draws into axes that it is given.


def draw_field(figure, axes, field, run, zoom=None, parts=True, limits=None):
    """Pressure by that far away, and who computed it."""
    pressure = field.fields["pressure"] / run["reference"]["pressure"]
    cells = draw_cells(axes, field, pressure, zoom, cmap="viridis", rasterized=True)
    extend = "neither"
    if limits:
        cells.set_clim(*limits)
        beyond = (pressure.min() < limits[0], pressure.max() > limits[1])
        extend = {(True, True): "both", (True, False): "min", (False, True): "max"}.get(beyond, extend)
    if parts and run["ranks"] > 1:
        draw_parts(axes, field, field.fields["rank"].astype(int), zoom, pressure)
    bar = figure.colorbar(cells, ax=axes, label="pressure / free stream", shrink=0.85, pad=0.02, extend=extend)
    bar.outline.set_visible(False)


def draw_tube(axes, field, run):
    """Pressure along a mesh that is too thin to be seen."""
    x = centres(field)[:, 0]
    order = np.argsort(x)
    axes.plot(x[order], field.fields["pressure"][order] / run["reference"]["pressure"], ".-", color=BLUE, markersize=3)
    axes.set(xlabel="x", ylabel="pressure / reference")


def draw_residuals(axes, history):
    names = (("density", "mass", INK), ("momentumX", "momentum x", BLUE), ("momentumY", "momentum y", ORANGE))
    for column, label, color in (*names, ("energy", "energy", GREEN)):
        values = history[column]
        if values[0] > 0:
            axes.semilogy(history["step"], values / values[0], color=color, linewidth=1.4, label=label)
    axes.set(title="Residuals", ylabel="share of the first")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def draw_forces(axes, history, exact):
    for name, color in (("lift", BLUE), ("drag", ORANGE)):
        values = history[name]
        if np.any(values != 0):
            axes.plot(history["step"], values, color=color, linewidth=1.4, label=f"{name}\n{values[-1]:.5f}")
        if name in exact:
            label = f"exact\n{exact[name]:.5f}"
            axes.axhline(exact[name], color=color, linewidth=1, linestyle=(0, (4, 3)), label=label)
            print(f"{name}: computed {values[-1]:.5f}, exact {exact[name]:.5f}")
    axes.set(title="Forces", ylabel="coefficient")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


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
    """The pressure coefficient, upwards negative as is usual for airfoils."""
    if reference is not None:
        x, pressure = reference_on_walls(surface, reference)
        axes.plot(x, pressure, "o", markersize=5, markerfacecolor="none", color=ORANGE, label="reference (SU2)")
    axes.plot(surface["x"], surface["pressureCoefficient"], ".", markersize=4, color=BLUE, label="euler")
    axes.invert_yaxis()
    axes.set(title="Pressure on walls", xlabel="x", ylabel="pressure coefficient $c_p$")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)


def along_shock(points, level, beta):
    """Where points come to stand that move along the shock up or down to a level."""
    return points[:, 0] + (level - points[:, 1]) / np.tan(beta)


def shock_points(field, run, corner, beta, ratio):
    """Where, level by level, the pressure passes the middle between both sides of the exact shock."""
    middle = centres(field)
    pressure = field.fields["pressure"] / run["reference"]["pressure"]
    half = 0.5 * (1 + ratio)
    size = np.sqrt(np.prod(np.ptp(field.points[:, :2], axis=0)) / len(pressure))
    found = []
    top = field.points[:, 1].max()
    right = field.points[:, 0].max()
    for y in np.linspace(corner[1], top, 40)[2:]:  # nearer to the corner the shock fills the cells below it
        at = corner[0] + (y - corner[1]) / np.tan(beta)
        if at > right - 3 * size:
            break
        near = (np.abs(middle[:, 1] - y) < 0.6 * size) & (np.abs(middle[:, 0] - at) < 8 * size)
        x = along_shock(middle[near], y, beta)
        order = np.argsort(x)
        x, p = x[order], pressure[near][order]
        passes = np.flatnonzero((p[:-1] < half) & (p[1:] >= half))
        if len(passes):
            k = passes[0]
            found.append((x[k] + (half - p[k]) / (p[k + 1] - p[k]) * (x[k + 1] - x[k]), y))
    return np.array(found).reshape(-1, 2)


def exact_shock(run, wedge):
    """Angle and pressure ratio of the shock of a corner."""
    gamma, mach = run["gas"]["gamma"], run["reference"]["mach"]
    beta = shock_angle(mach, np.radians(wedge[2]), gamma)
    if beta is None:
        sys.exit(f"plot.py: at Mach {mach:g} a corner of {wedge[2]:g} degrees has no attached shock")
    return beta, pressure_ratio(mach, beta, gamma)


def exact_forces(field, run, wedge):
    """Lift and drag of the wall behind a corner; nothing where the shock comes back to it."""
    beta, ratio = exact_shock(run, wedge)
    right, top = field.points[:, :2].max(axis=0)
    length = right - wedge[0]
    if wedge[1] + length * np.tan(beta) > top:
        return {}
    dynamic = 0.5 * run["gas"]["gamma"] * run["reference"]["mach"] ** 2
    lift = -(ratio - 1) * length / (dynamic * run["reference"]["area"])
    return {"lift": lift, "drag": -lift * np.tan(np.radians(wedge[2]))}


def draw_shock(figure, axes, field, surface, run, wedge, limits):
    """Left the field with the exact shock, right the pressure on the wall and across the field."""
    corner, deflection = wedge[:2], np.radians(wedge[2])
    beta, ratio = exact_shock(run, wedge)
    x = field.points[:, 0]
    top = field.points[:, 1].max()
    end = min(x.max(), corner[0] + (top - corner[1]) / np.tan(beta))
    rise = (end - corner[0]) * np.tan(beta)

    plane = axes[0]
    draw_field(figure, plane, field, run, parts=False, limits=limits)
    found = shock_points(field, run, corner, beta, ratio)
    plane.plot(*found.T, "o", markersize=3.5, markerfacecolor="white", markeredgecolor=INK, label="computed, half-way")
    plane.plot(
        [corner[0], end],
        [corner[1], corner[1] + rise],
        color=ORANGE,
        linewidth=1.6,
        label=f"exact, {np.degrees(beta):.2f}°",
    )
    if len(found) > 2:
        angle = np.degrees(np.arctan(np.polyfit(found[:, 0], found[:, 1], 1)[0]))
        plane.lines[0].set_label(f"computed, {angle:.2f}°")
        print(f"shock: computed {angle:.3f}, exact {np.degrees(beta):.3f} degrees")
    plane.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, title="oblique shock")

    wall, across = axes[1]
    on_wall = np.abs(surface["y"] - corner[1] - np.maximum(0, surface["x"] - corner[0]) * np.tan(deflection)) < 1e-6
    scale = run["reference"]["pressure"]
    wall.plot(
        [x.min(), corner[0], corner[0], x.max()], [1, 1, ratio, ratio], color=ORANGE, linewidth=1.4, label="exact"
    )
    wall.plot(
        surface["x"][on_wall],
        surface["pressure"][on_wall] / scale,
        ".",
        color=BLUE,
        markersize=4,
        label="computed",
    )
    wall.set(title="On the wall", ylabel="pressure / free stream", xlim=(x.min(), x.max()))
    wall.legend(loc="upper left")
    wall.text(
        x.max(),
        1.04,
        "the shock begins inside one cell:\na wave along ten others, half as\nlong where they are half as large",
        ha="right",
        fontsize=8,
        color=INK,
    )

    level = corner[1] + 0.55 * rise
    middle = centres(field)
    size = np.sqrt(np.prod(np.ptp(field.points[:, :2], axis=0)) / len(middle))
    heights = field.points[field.cell_nodes, 1]
    row = np.minimum.reduceat(heights, field.cell_offsets[:-1]) <= level
    row &= np.maximum.reduceat(heights, field.cell_offsets[:-1]) > level
    at = corner[0] + (level - corner[1]) / np.tan(beta)
    across.plot([x.min(), at, at, x.max()], [1, 1, ratio, ratio], color=ORANGE, linewidth=1.4)
    pressure = field.fields["pressure"][row] / scale
    along = along_shock(middle[row], level, beta)
    across.plot(along, pressure, ".", color=BLUE, markersize=4)
    behind = pressure[along > at + 8 * size]
    if len(behind):
        print(f"pressure behind it: computed {behind.mean():.4f}, exact {ratio:.4f} times that ahead")
    across.set(
        title=f"In the field, at y = {level:.2f}", xlabel="x", ylabel="pressure / free stream", xlim=(x.min(), x.max())
    )
    plane.axhline(level, color="white", linewidth=0.9, linestyle=(0, (4, 3)))


# ----------------------------------------------------------------------------------------------------------------------
# Pictures. Each function makes one, and returns its path.


def save(figure, path):
    """With the ending that --format asks for."""
    path = path.with_suffix("." + plt.rcParams["savefig.format"])
    figure.savefig(path)
    plt.close(figure)
    return path


def picture_of_field(folder, field, run, zoom, limits):
    figure, axes = plt.subplots(figsize=(7, 4.6), layout="constrained")
    width, height, _ = np.ptp(field.points, axis=0)
    if height < 0.05 * width:
        draw_tube(axes, field, run)
    else:
        draw_field(figure, axes, field, run, zoom, limits=limits)
    ranks = f"{run['ranks']} ranks" if run["ranks"] > 1 else "1 rank"
    mach = run["reference"]["mach"]
    axes.set_title((f"Mach {mach:g}, " if mach > 0 else "") + f"{run['cells']} cells on {ranks}")
    return save(figure, folder / "field.png")


def picture_of_parts(folder, path, hot=None):
    last = len(VtkContent(path).times) - 1
    steps = sorted({round(last * k / 5) for k in range(6)})
    figure, axes = plt.subplots(2, 3, figsize=(10, 4.6), layout="constrained")
    for place in axes.flat[len(steps) :]:
        place.set_axis_off()
    for place, step in zip(axes.flat, steps, strict=False):
        field = VtkContent(path, step)
        time = field.times[field.step]
        draw_owners(place, field, field.fields["rank"].astype(int))
        if hot:
            centre = np.array(hot["centre"]) + time * np.array(hot["velocity"])
            place.add_patch(plt.Circle(centre[:2], hot["radius"], fill=False, color=INK, linestyle="--"))
        place.set_title(f"time {time:.3g}", fontsize=9)
    return save(figure, folder / "parts.png")


def picture_of_history(folder, history, exact):
    forces = np.any(history["lift"] != 0) or np.any(history["drag"] != 0)
    rows = 1 + forces
    figure, axes = plt.subplots(
        rows, 1, figsize=(7, 2.4 * rows + 0.4), sharex=True, layout="constrained", squeeze=False
    )
    draw_residuals(axes[0, 0], history)
    if forces:
        draw_forces(axes[1, 0], history, exact)
    axes[-1, 0].set_xlabel("step")
    return save(figure, folder / "history.png")


def picture_of_surface(folder, surface, reference):
    figure, axes = plt.subplots(figsize=(7, 4.4), layout="constrained")
    draw_surface(axes, surface, reference)
    return save(figure, folder / "surface.png")


def picture_of_shock(folder, field, surface, run, wedge, limits):
    figure = plt.figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1.3, 1))
    draw_shock(left, (left.subplots(), right.subplots(2, 1, sharex=True)), field, surface, run, wedge, limits)
    return save(figure, folder / "shock.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--wedge", type=float, nargs=3, metavar=("X", "Y", "DEGREES"))
    parser.add_argument("--reference", type=pathlib.Path)
    parser.add_argument("--zoom", type=float, nargs=4, metavar=("X0", "X1", "Y0", "Y1"))
    parser.add_argument("--range", type=float, nargs=2, metavar=("LOW", "HIGH"))
    parser.add_argument("--format", choices=("png", "pdf", "svg"), default="png")
    arguments = parser.parse_args()
    folder = arguments.output or arguments.folder
    folder.mkdir(parents=True, exist_ok=True)

    plt.rcParams.update({**STYLE, "savefig.format": arguments.format, "svg.fonttype": "none"})
    run = json.loads((arguments.folder / "run.json").read_text())
    surface = read_columns(arguments.folder / "surface.csv")
    # A run that went on from a checkpoint has a file for each part of it.
    files = sorted(arguments.folder.glob("fields*.vtkhdf"), key=lambda path: path.stat().st_mtime)
    field = read_field(files[-1]) if files else None
    if arguments.wedge and field is None:
        sys.exit("plot.py: --wedge needs fields.vtkhdf of a flat mesh, and h5py")

    pictures = []
    if field is not None:
        pictures.append(picture_of_field(folder, field, run, arguments.zoom, arguments.range))
    if field is not None and "balance" in run and len(field.times) > 1:
        pictures.append(picture_of_parts(folder, files[-1], run.get("kinetics")))
    if arguments.wedge:
        pictures.append(picture_of_shock(folder, field, surface, run, arguments.wedge, arguments.range))
    elif len(surface["x"]) > 0 and np.isfinite(surface["pressureCoefficient"]).all():
        pictures.append(picture_of_surface(folder, surface, arguments.reference))
    exact = exact_forces(field, run, arguments.wedge) if arguments.wedge else {}
    pictures.append(picture_of_history(folder, read_columns(arguments.folder / "history.csv"), exact))
    for path in pictures:
        print(path)


if __name__ == "__main__":
    main()
