"""Flask-CronLock with a central mechanism taken out, to see that the tests would notice.

``apply`` is to be called before a CronLock is made.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import func

from flask_cronlock import ledger, statements


class _NoLocks:
    """SQL's functions, but for the one that takes the lock: everybody has it."""

    def pg_try_advisory_xact_lock(self, key: Any) -> Any:
        return key.is_not(None)

    def __getattr__(self, name: str) -> Any:
        return getattr(func, name)


def _without_lock() -> None:
    """Let every run have the lock."""
    assert statements.func is func
    statements.func = _NoLocks()


def _without_claim() -> None:
    """Store every run without its slot, so that no run conflicts with another."""
    about = ledger._about

    def without_slot(run: Any) -> dict[str, Any]:
        values = about(run)
        assert "slot_key" in values
        return {**values, "slot_key": None}

    ledger._about = without_slot


MECHANISMS = {"lock": _without_lock, "claim": _without_claim}


def apply(names: str) -> None:
    """Take out the mechanisms *names*, which are separated by commas."""
    for name in filter(None, names.split(",")):
        MECHANISMS[name]()
