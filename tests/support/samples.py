"""The sample application, on a database with its tables and users."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flask import Flask
from flask.testing import FlaskClient

from sample_app import create_app
from sample_app.extensions import db
from sample_app.seed import seed

from .databases import Database


@contextmanager
def sample_on(
    database: Database, subscribers: int, unsubscribed: int, **settings: Any
) -> Iterator[Flask]:
    app = create_app({"SQLALCHEMY_DATABASE_URI": database.url, **settings})
    make_tables(app)
    with app.app_context():
        seed(db.session(), subscribers, unsubscribed)
        db.session.commit()
    try:
        yield app
    finally:
        with app.app_context():
            db.engine.dispose()


def make_tables(app: Flask) -> None:
    """Make all tables, as the Procfile's release line does."""
    for command in (["cron", "init-db"], ["sample", "init-db"]):
        result = app.test_cli_runner().invoke(args=command)
        assert result.exit_code == 0, result.output


def listed(client: FlaskClient, path: str) -> tuple[list[str], int]:
    """Return the readers that are listed from *path* on, page by page, and how many pages."""
    readers: list[str] = []
    pages = 0
    while path:
        page = client.get(path).text
        readers += re.findall(r"reader\d+@example\.com", page)
        older = re.search(r'href="([^"]+)" rel="next"', page)
        path, pages = older[1] if older else "", pages + 1
    return readers, pages
