"""Draws cells and the parts of ranks into axes of Matplotlib."""

import numpy as np
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import BoundaryNorm, ListedColormap

BLUE, ORANGE, GREEN, INK = "#2f6db3", "#d9722b", "#2f8a5b", "#22262b"
PALETTE = ["#3b6fb6", "#e0803a", "#3f9b6a", "#a0559c", "#b8a13a", "#4fa8b8", "#c9526a", "#7a6a5d"]
#: For matplotlib.rc_context.
STYLE = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e6ea",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "savefig.dpi": 150,
}


def draw_cells(axes, content, values, zoom=None, **options):
    """Colours polygons by the values of their cells, [cells]; `zoom` is x0, x1, y0, y1 of flat meshes."""
    shown = values[content.polygon_cells]
    lower, upper = content.points.min(axis=0), content.points.max(axis=0)
    axes.grid(False)
    if content.is_flat:
        corners = [corners[:, :2] for corners in content.corners()]
        cells = PolyCollection(corners, array=shown, edgecolors="none", antialiased=False, **options)
        axes.add_collection(cells)
        box = zoom or (lower[0], upper[0], lower[1], upper[1])
        axes.set(xlim=box[:2], ylim=box[2:], aspect="equal", xlabel="x", ylabel="y")
        if zoom and "norm" not in options:
            seen = shown[_inside(content.means(content.points), zoom)]
            if len(seen):
                cells.set_clim(seen.min(), seen.max())
        return cells
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    cells = Poly3DCollection(content.corners(), linewidths=0.1, edgecolors=INK)
    cells.set_array(shown)
    cells.set(**options)
    axes.add_collection3d(cells)
    axes.set(xlim=(lower[0], upper[0]), ylim=(lower[1], upper[1]), zlim=(lower[2], upper[2]))
    axes.set_box_aspect(np.maximum(upper - lower, 1e-3 * np.ptp(content.points)))
    return cells


def draw_line(axes, points, values, **options):
    """Values at points of a line, [points] or [points, width] as `Probe` returns them, by the distance from the
    first point. Points in no cell, which have NaN, leave gaps."""
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    lines = axes.plot(np.concatenate([[0.0], np.cumsum(steps)]), values, **options)
    axes.set(xlabel="distance along the line")
    return lines


def draw_parts(axes, content, parts, zoom=None, values=None):
    """The outlines of parts of a flat mesh, `parts` [cells], and the number of each that is seen; with `values` [cells]
    at a place where these hardly vary."""
    edges = content.edges_between(parts)[:, :, :2]
    axes.add_collection(LineCollection(edges, colors="white", linewidths=1.4, capstyle="round"))
    middle = content.means(content.points)[:, :2]
    of_polygons = parts[content.polygon_cells]
    seen = _inside(middle, zoom) if zoom else np.ones(len(middle), dtype=bool)
    for part in np.unique(of_polygons[seen]):
        x, y = _calm_place(middle, seen & (of_polygons == part), values, content)
        label = axes.text(x, y, f"rank {part}", ha="center", va="center", fontsize=8, color=INK)
        label.set_bbox({"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "boxstyle": "round,pad=0.25"})


def _calm_place(middle, inside, values, content):
    """Near the middle of the polygons `inside`, but where `values` vary least under a label."""
    centre = np.median(middle[inside], axis=0)
    if values is None:
        return centre
    shown, extent = values[content.polygon_cells], np.ptp(middle, axis=0)
    places = middle[inside][:: max(1, np.count_nonzero(inside) // 200)]

    def cost(place):
        under = (np.abs(middle - place) < 0.06 * extent).all(axis=1)
        unrest = np.ptp(shown[under]) / max(np.ptp(shown), 1e-300) + np.count_nonzero(under & ~inside) / len(middle)
        return 10 * unrest + np.linalg.norm((place - centre) / extent)

    return min(places, key=cost)


def draw_owners(axes, content, owners, zoom=None):
    """Cells in the colours of the ranks that own them."""
    ranks = int(owners.max()) + 1
    colours = ListedColormap([PALETTE[rank % len(PALETTE)] for rank in range(ranks)])
    return draw_cells(axes, content, owners, zoom, cmap=colours, norm=BoundaryNorm(np.arange(ranks + 1) - 0.5, ranks))


def _inside(middle, zoom):
    return ((middle[:, :2] >= [zoom[0], zoom[2]]) & (middle[:, :2] <= [zoom[1], zoom[3]])).all(axis=1)
