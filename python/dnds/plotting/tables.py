"""Reads tables with a heading, as solvers write their histories."""

import csv

import numpy as np


def read_columns(path):
    """The columns of a table by name: numbers where all entries are, else words. Raises ValueError for other files."""
    try:
        with open(path, newline="") as file:
            rows = [row for row in csv.reader(file, skipinitialspace=True) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is not a table: {error}") from None
    if not rows:
        raise ValueError(f"{path} is not a table: it is empty")
    if len({len(row) for row in rows}) != 1:
        raise ValueError(f"{path} is not a table: its rows differ in length")
    columns = {}
    for k, name in enumerate(rows[0]):
        entries = [row[k] for row in rows[1:]]
        try:
            columns[name] = np.array(entries, dtype=float)
        except ValueError:
            columns[name] = np.array(entries)
    return columns
