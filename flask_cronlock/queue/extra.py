"""Whether the extra ``queue`` is installed, and who is to know of it."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
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


def teach_alembic() -> None:
    """Let autogenerate bring Procrastinate's tables in, and never drop them.

    Only where the app has imported Alembic, as Flask-Migrate does: it takes its time.
    """
    if "alembic" in sys.modules:
        import_module(f"{__package__}.migrations")
