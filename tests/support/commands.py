"""The ``flask cron`` commands, and what each failure of theirs owes to its reader."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from click.testing import Result

from .databases import Database
from .worlds import SECRET, World


def cron(world: World, *words: str) -> Result:
    return world.app.test_cli_runner().invoke(args=["cron", *words])


def fails(result: Result, code: int, cure: str) -> None:
    """Check that a command failed as promised: with one line, which names the cure."""
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    assert cure in result.stderr
    if code == 1:
        assert result.stderr.startswith("Error: ")
        assert len(result.stderr.splitlines()) == 1
    assert SECRET not in result.output


@contextmanager
def stranger_to(database: Database) -> Iterator[str]:
    """Yield the URL of a role that may connect, and no more."""
    role = f"stranger_{uuid4().hex[:8]}"
    database.query(f"CREATE ROLE {role} LOGIN")
    try:
        yield database.url.replace("//postgres@", f"//{role}@")
    finally:
        database.query(f"DROP ROLE {role}")
