"""Building blocks of pictures: reading results, drawing cells and parts of ranks, styles.

Needs NumPy, h5py and Matplotlib, but neither MPI nor the compiled module: programs of cases/ take it from the sources.
"""

from .drawing import BLUE, GREEN, INK, ORANGE, PALETTE, STYLE, draw_cells, draw_line, draw_owners, draw_parts
from .tables import read_columns
from .vtkhdf import VtkContent

__all__ = ["BLUE", "GREEN", "INK", "ORANGE", "PALETTE", "STYLE", "VtkContent", "draw_cells", "draw_line", "draw_owners",
           "draw_parts", "read_columns"]
