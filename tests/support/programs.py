"""The programs that only some tests need: found, or loudly missing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TypeVar

import pytest

Found = TypeVar("Found")


def require(found: Found | None, variable: str, reason: str) -> Found:
    """Return what was *found*; else skip, or fail where *variable* is set, as CI does."""
    if found:
        return found
    if os.environ.get(variable):
        pytest.fail(reason)
    pytest.skip(f"NOT TRIED: {reason}")


def find_chromium() -> str:
    names = ("chromium", "chromium-browser", "google-chrome")
    return require(
        os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None),
        "CRONLOCK_REQUIRE_CHROMIUM",
        "Chromium is missing: apt-get install chromium, or set CHROMIUM to its path",
    )


def find_old_postgres() -> Path:
    """Return the binaries' folder of a PostgreSQL that has no limit for a whole transaction."""
    return require(
        max(Path("/usr/lib/postgresql").glob("1[456]/bin"), default=None),
        "CRONLOCK_REQUIRE_OLD_POSTGRES",
        "no PostgreSQL 14 to 16; apt-get install postgresql-15, or -14, -16",
    )
