"""python -m dnds.plot FILE.vtkhdf: a picture of a field, of the partition, and of residual histories.

    python -m dnds.plot flow.vtkhdf [--field NAME] [--component N] [--step N] [--history CSV] [--zoom X0 X1 Y0 Y1]
                        [-o PNG]

Draws what VtkFile and the solvers in cases/ write: the field (the first one unless --field says which; of several
components their magnitude, titled |NAME|, or that of --component, titled NAME[N]) at the last time, the field "rank"
beside it where the file has it, and the columns of a table such as euler's history.csv on a logarithmic scale. Volumes
are shown by their surface. Needs h5py and Matplotlib.
"""

import argparse
import pathlib
import sys

import numpy as np

#: More parts than these get no labels of their own.
MOST_LABELS = 64


def is_vector(content, name):
    """Whether a field has more than one component."""
    values = (content.fields if name in content.fields else content.point_fields)[name]
    return values.ndim > 1 and values.shape[1] > 1


def values_of(content, name, component=None):
    """One number per cell: the magnitude of several components or one of them; values at nodes are averaged over a
    cell's corners."""
    at_cells = name in content.fields
    values = (content.fields if at_cells else content.point_fields)[name].astype(float)
    columns = values.reshape(len(values), -1)
    if component is not None and not 0 <= component < columns.shape[1]:
        raise ValueError(f"'{name}' has components 0 to {columns.shape[1] - 1}: there is no {component}")
    if component is not None:
        values = columns[:, component]
    elif is_vector(content, name):
        values = np.linalg.norm(columns, axis=1)
    else:
        values = columns[:, 0]
    return values if at_cells else content.cell_means(values)


def title_of(content, name, component=None):
    """What `values_of` are: `u`, `|u|` or `u[1]`."""
    if not is_vector(content, name):
        return name
    return f"|{name}|" if component is None else f"{name}[{component}]"


def read_history(path):
    """The columns of numbers of a table with a heading, by name; the first is the abscissa."""
    from .plotting import read_columns

    columns = {name: values for name, values in read_columns(path).items() if values.dtype.kind == "f"}
    if len(columns) < 2 or len(next(iter(columns.values()))) < 2:
        raise ValueError(f"{path} is not a history: it needs a heading, two columns of numbers, and two rows")
    return columns


def draw_history(axes, columns):
    """Columns against the first, on a logarithmic scale: only positive ones, such as residuals, unlike forces."""
    from .plotting import PALETTE

    (abscissa, at), *others = columns.items()
    positive = [(name, values) for name, values in others if np.all(values > 0)]
    if not positive:
        raise ValueError(f"no column of the history is positive throughout, but {', '.join(columns)}")
    for k, (name, values) in enumerate(positive):
        axes.semilogy(at, values, label=name, color=PALETTE[k % len(PALETTE)])
    axes.set(xlabel=abscissa, title="history")
    axes.legend()


def draw(path, field=None, step=-1, history=None, zoom=None, component=None):
    """The picture as a Matplotlib figure. Raises ValueError for a field, a component, a step or a history that does not
    exist."""
    import matplotlib
    from matplotlib.figure import Figure

    from .plotting import STYLE, VtkContent, draw_cells, draw_owners, draw_parts

    content = VtkContent(path, step)
    names = [name for name in (*content.fields, *content.point_fields) if name != "rank"]
    if field is not None and field not in names:
        raise ValueError(f"{path} has no field '{field}', but {', '.join(names) or 'none'}")
    if zoom and not content.is_flat:
        raise ValueError(f"{path} is not flat: --zoom is for meshes in the plane")
    panels = ([field or names[0]] if names else []) + (["rank"] if "rank" in content.fields else [])
    if not panels and not history:
        raise ValueError(f"{path} has no fields to draw")
    count = len(panels) + (history is not None)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(5.5 * count, 4.6), layout="constrained")
        for k, name in enumerate(panels):
            axes = figure.add_subplot(1, count, k + 1, projection=None if content.is_flat else "3d")
            if name == "rank":
                owners = content.fields[name].astype(int)
                ranks = int(owners.max()) + 1
                shown = draw_owners(axes, content, owners, zoom)
                axes.set_title(f"owners: {ranks} rank{'s' if ranks > 1 else ''}")
                if content.is_flat and 1 < ranks <= MOST_LABELS:
                    draw_parts(axes, content, owners, zoom)
                elif ranks <= MOST_LABELS:
                    figure.colorbar(shown, ax=axes, ticks=range(ranks), shrink=0.7)
            else:
                shown = draw_cells(axes, content, values_of(content, name, component), zoom, cmap="viridis")
                time = f", t = {content.times[content.step]:g}" if len(content.times) else ""
                axes.set_title(f"{title_of(content, name, component)}{time}")
                figure.colorbar(shown, ax=axes, shrink=0.7)
        if history is not None:
            draw_history(figure.add_subplot(1, count, count), read_history(history))
    return figure


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m dnds.plot", description="Draws fields, owners and residuals.")
    parser.add_argument("file", help="a VTKHDF file")
    parser.add_argument("--field", help="which field (default: the first)")
    parser.add_argument("--component", type=int, help="which of its components, from 0 (default: their magnitude)")
    parser.add_argument("--step", type=int, default=-1, help="which time, from 0; negative from the end (default -1)")
    parser.add_argument("--history", help="a table of residuals by step, for example euler's history.csv")
    parser.add_argument("--zoom", type=float, nargs=4, metavar=("X0", "X1", "Y0", "Y1"), help="a part of a flat mesh")
    parser.add_argument("-o", "--output", help="the picture (default: beside the file, with .png)")
    options = parser.parse_args(arguments)
    output = options.output or str(pathlib.Path(options.file).with_suffix(".png"))
    try:
        figure = draw(options.file, options.field, options.step, options.history, options.zoom, options.component)
        figure.savefig(output, dpi=150)
    except ImportError as error:
        print(f"dnds.plot: pictures need Matplotlib and h5py (pip install '.[plot]'): {error}", file=sys.stderr)
        return 1
    except (OSError, ValueError) as error:
        print(f"dnds.plot: {error}", file=sys.stderr)
        return 1
    print(f"the picture is {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
