"""Whether the extra ``queue`` is installed."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

from ..exceptions import QueueMissing


@cache
def queue_is_installed() -> bool:
    """Tell whether Procrastinate is there; it is not imported for that."""
    return find_spec("procrastinate") is not None


def require_queue() -> None:
    """Refuse what needs the queue where its package is missing.

    :raises QueueMissing: naming the extra.
    """
    if not queue_is_installed():
        raise QueueMissing
