"""python -m dnds.plot FILE.vtkhdf: a picture of a field, of the partition, and of residual histories.

    python -m dnds.plot flow.vtkhdf [--field NAME] [--step N] [--history CSV] [--zoom X0 X1 Y0 Y1] [--output PNG]

Draws what VtkFile and the solvers in cases/ write: the field (the first one unless --field says which; of several
components their magnitude) at the last time, the field "rank" beside it where the file has it, and the columns of a
table such as euler's history.csv on a logarithmic scale. Volumes are shown by their surface. Needs h5py and Matplotlib.
"""

import argparse
import csv
import pathlib
import sys

import numpy as np

from ._vtk import VtkContent

PALETTE = ["#3b6fb6", "#e0803a", "#3f9b6a", "#a0559c", "#b8a13a", "#4fa8b8", "#c9526a", "#7a6a5d"]


def values_of(content, name):
    """One number a cell: of several components the magnitude, of values at nodes the mean over a cell's corners."""
    if name in content.fields:
        values = content.fields[name].astype(float)
        return np.linalg.norm(values, axis=1) if values.ndim > 1 else values
    values = content.point_fields[name].astype(float)
    if values.ndim > 1:
        values = np.linalg.norm(values, axis=1)
    cells = np.zeros(content.cell_count)
    for polygon, cell in zip(content.polygons, content.polygon_cells, strict=True):
        cells[cell] = values[polygon].mean()
    return cells


def draw_cells(axes, content, values, zoom, **options):
    """Colours polygons by the values of their cells: [cells]."""
    from matplotlib.collections import PolyCollection
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    of_polygons = values[content.polygon_cells]
    corners = [content.points[polygon] for polygon in content.polygons]
    lower, upper = content.points.min(axis=0), content.points.max(axis=0)
    if content.is_surface and np.ptp(content.points[:, 2]) == 0:
        shown = PolyCollection([polygon[:, :2] for polygon in corners], array=of_polygons, edgecolors="face", **options)
        axes.add_collection(shown)
        box = zoom or (lower[0], upper[0], lower[1], upper[1])
        axes.set(xlim=box[:2], ylim=box[2:], aspect="equal")
    else:
        shown = Poly3DCollection(corners, linewidths=0.1, edgecolors="#22262b")
        shown.set_array(of_polygons)
        shown.set(**options)
        axes.add_collection3d(shown)
        axes.set(xlim=(lower[0], upper[0]), ylim=(lower[1], upper[1]), zlim=(lower[2], upper[2]))
        axes.set_box_aspect(np.maximum(upper - lower, 1e-3 * np.ptp(content.points)))
    return shown


def read_history(path):
    """The columns of numbers of a table with a heading, by name; the first is the abscissa."""
    try:
        with open(path, newline="") as file:
            rows = [row for row in csv.reader(file, skipinitialspace=True) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is no table: {error}") from None
    if len({len(row) for row in rows}) != 1:
        raise ValueError(f"{path} is no table: its rows differ in length")
    columns = {}
    for name, entries in zip(rows[0], zip(*rows[1:], strict=True), strict=True):
        try:
            columns[name] = np.array(entries, dtype=float)
        except ValueError:
            continue  # words
    if len(columns) < 2 or len(rows) < 3:
        raise ValueError(f"{path} is no history: it needs a heading, two columns of numbers, and two rows")
    return columns


def draw_history(axes, columns):
    (abscissa, at), *others = columns.items()
    for k, (name, values) in enumerate(others):
        if np.all(values > 0):  # residuals are; forces are not
            axes.semilogy(at, values, label=name, color=PALETTE[k % len(PALETTE)])
    axes.set(xlabel=abscissa, title="history")
    axes.legend(frameon=False)


def draw(path, field=None, step=-1, history=None, zoom=None):
    """The picture as a Matplotlib figure. Raises ValueError for a field, a step or a history that is not there."""
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.figure import Figure

    content = VtkContent(path, step)
    names = [name for name in (*content.fields, *content.point_fields) if name != "rank"]
    if field is not None and field not in names:
        raise ValueError(f"{path} has no field '{field}', but {', '.join(names) or 'none'}")
    panels = ([field or names[0]] if names else []) + (["rank"] if "rank" in content.fields else [])
    if not panels and not history:
        raise ValueError(f"{path} has no fields to draw")
    count = len(panels) + (history is not None)
    figure = Figure(figsize=(5.5 * count, 4.6), layout="constrained")
    flat = content.is_surface and np.ptp(content.points[:, 2]) == 0
    for k, name in enumerate(panels):
        axes = figure.add_subplot(1, count, k + 1, projection=None if flat else "3d")
        values = values_of(content, name)
        if name == "rank":
            ranks = int(values.max()) + 1
            colours = ListedColormap([PALETTE[rank % len(PALETTE)] for rank in range(ranks)])
            shown = draw_cells(axes, content, values, zoom, cmap=colours,
                               norm=BoundaryNorm(np.arange(ranks + 1) - 0.5, ranks))
            axes.set_title(f"owners: {ranks} ranks")
            figure.colorbar(shown, ax=axes, ticks=range(ranks), shrink=0.7)
        else:
            shown = draw_cells(axes, content, values, zoom, cmap="viridis")
            time = f", t = {content.times[content.step]:g}" if len(content.times) else ""
            axes.set_title(f"{name}{time}")
            figure.colorbar(shown, ax=axes, shrink=0.7)
    if history is not None:
        draw_history(figure.add_subplot(1, count, count), read_history(history))
    return figure


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m dnds.plot", description=__doc__.splitlines()[0])
    parser.add_argument("file", help="a VTKHDF file")
    parser.add_argument("--field", help="which field (default: the first)")
    parser.add_argument("--step", type=int, default=-1, help="which time, from 0; negative from the end (default -1)")
    parser.add_argument("--history", help="a table of residuals by step, for example euler's history.csv")
    parser.add_argument("--zoom", type=float, nargs=4, metavar=("X0", "X1", "Y0", "Y1"))
    parser.add_argument("--output", help="the picture (default: beside the file, with .png)")
    options = parser.parse_args(arguments)
    output = options.output or str(pathlib.Path(options.file).with_suffix(".png"))
    try:
        draw(options.file, options.field, options.step, options.history, options.zoom).savefig(output, dpi=150)
    except (OSError, ValueError, ImportError) as error:
        print(f"dnds.plot: {error}", file=sys.stderr)
        return 1
    print(f"the picture is {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
