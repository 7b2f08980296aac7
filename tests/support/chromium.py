"""A page as a real browser shows it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

REQUIRED = "CRONLOCK_REQUIRE_CHROMIUM"
"""Set by CI: a missing Chromium is then a failure, not a skip."""
NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def find_chromium() -> str:
    """Return the browser, or skip (in CI: fail) loudly."""
    given = os.environ.get("CHROMIUM")
    found = given or next((path for name in NAMES if (path := shutil.which(name))), None)
    if found:
        return found
    reason = "Chromium is missing: apt-get install chromium, or set CHROMIUM to its path"
    if os.environ.get(REQUIRED):
        pytest.fail(reason)
    pytest.skip(reason)


def rendered(url: str, screenshot: Path | None = None) -> str:
    """Return the page's document after it has been laid out; keep a *screenshot* if asked to."""
    with tempfile.TemporaryDirectory(prefix="cronlock-browser-") as profile:
        command = [find_chromium(), *QUIET, f"--user-data-dir={profile}"]
        shown = [f"--screenshot={screenshot}"] if screenshot else ["--dump-dom"]
        run = subprocess.run(
            [*command, *shown, url], capture_output=True, text=True, timeout=60, check=True
        )
    return run.stdout
