"""Values that have no form in JSON, and hardly one in words."""

from __future__ import annotations

from typing import Any


class Unspeakable:
    """An object whose ``repr()`` fails."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")


def endless() -> list[Any]:
    """Return a list that holds itself."""
    items: list[Any] = []
    items.append(items)
    return items


def deep() -> list[Any]:
    """Return lists in lists, deeper than any stack."""
    items: list[Any] = []
    for _ in range(100_000):
        items = [items]
    return items
