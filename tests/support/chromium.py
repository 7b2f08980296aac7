"""A page as a real browser shows it."""

from __future__ import annotations

import subprocess
import tempfile

from .programs import find_chromium

QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def rendered(url: str) -> str:
    """Return the page's document after it has been laid out."""
    with tempfile.TemporaryDirectory(prefix="cronlock-browser-") as profile:
        run = subprocess.run(
            [find_chromium(), *QUIET, f"--user-data-dir={profile}", "--dump-dom", url],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    return run.stdout
