"""A private copy of what the tests need, in which a mechanism can be taken out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from .mechanism import ROOT, Mechanism

FOLDERS = ("flask_cronlock", "sample_app", "tests", "docs")
FILES = ("pyproject.toml", "wsgi.py", "gunicorn.conf.py", "Procfile", "README.md")
PACKAGE = "flask_cronlock"


def copy_of(source: Path, target: Path, out: Mechanism | None = None) -> Path:
    """Copy the checkout *source* to *target*, without the mechanism *out*."""
    for name in FOLDERS:
        shutil.copytree(source / name, target / name, dirs_exist_ok=True)
    for name in FILES:
        shutil.copy2(source / name, target)
    if out is not None:
        package = target / PACKAGE
        (package / out.file).write_text(out.without(package), encoding="utf-8")
    return target


def fresh_copy(target: Path) -> Path:
    """Copy this checkout to *target*."""
    return copy_of(ROOT, target)


def environment(checkout: Path, more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which Python imports from *checkout* first.

    An editable install comes after PYTHONPATH; what cannot be tried here must not be skipped. What
    the first run has compiled is copied with the rest.
    """
    own = {
        "PYTHONPATH": str(checkout),
        "PYTHONDONTWRITEBYTECODE": "",
        "CRONLOCK_REQUIRE_PGBOUNCER": "1",
    }
    return {**os.environ, **own, **more}
