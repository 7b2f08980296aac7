"""Columns of text for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

import click


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print *rows* under *heads*, each column as wide as its widest cell."""
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    for row in [heads, *rows]:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())
