"""A PostgreSQL of the versions that have no limit for a whole transaction: 14 to 16."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REQUIRED = "CRONLOCK_REQUIRE_OLD_POSTGRES"
"""Set by CI: a missing one is then a failure, not a skip."""


def find_old_postgres() -> Path:
    """Return the folder of its binaries, or skip (in CI: fail) loudly."""
    found = sorted(Path("/usr/lib/postgresql").glob("1[456]/bin"))
    if found:
        return found[-1]
    reason = "NOT TRIED: no PostgreSQL 14 to 16; apt-get install postgresql-15, or -14, -16"
    if os.environ.get(REQUIRED):
        pytest.fail(reason)
    pytest.skip(reason)
