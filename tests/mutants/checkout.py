"""A private copy of what the tests need, in which a mechanism can be taken out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from .mechanism import ROOT, Mechanism

FOLDERS = ("flask_cronlock", "sample_app", "tests", "docs")
FILES = ("pyproject.toml", "wsgi.py", "gunicorn.conf.py", "Procfile", "README.md")
PACKAGE = "flask_cronlock"


def fresh_copy(target: Path) -> Path:
    """Copy this checkout to *target*."""
    return _copy(ROOT, target, shutil.copy2)


def copy_without(out: Mechanism, source: Path, target: Path) -> Path:
    """Copy the checkout *source* to *target*, without the mechanism *out*.

    All other files are links: to copy them would take a good part of the time.
    """
    _copy(source, target, os.link)
    package = target / PACKAGE
    changed = out.without(package)
    (package / out.file).unlink()
    (package / out.file).write_text(changed, encoding="utf-8")
    return target


def _copy(source: Path, target: Path, one: Callable[[Path, Path], object]) -> Path:
    for name in FOLDERS:
        shutil.copytree(source / name, target / name, copy_function=one)
    for name in FILES:
        one(source / name, target / name)
    return target


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
