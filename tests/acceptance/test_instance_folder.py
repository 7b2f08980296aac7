"""An instance of the tests makes nothing in the home directory of whoever runs them."""

from __future__ import annotations

from pathlib import Path

from ..support.databases import Database
from ..support.instances import gunicorn


def test_an_instance_makes_nothing_outside_its_folder(database: Database, tmp_path: Path) -> None:
    with gunicorn(database, HOME=str(tmp_path), XDG_RUNTIME_DIR="") as instance:
        assert instance.post("no-such-job").status == 404
        assert list(tmp_path.iterdir()) == []
    assert list(tmp_path.iterdir()) == []
