"""The sample's outbox, in a real browser."""

from __future__ import annotations

from sample_app import create_app
from sample_app.extensions import db

from ..support.chromium import rendered
from ..support.databases import Database
from ..support.instances import gunicorn


def test_a_browser_shows_the_digests_that_a_hit_wrote(database: Database) -> None:
    app = create_app({"SQLALCHEMY_DATABASE_URI": database.url})
    for command in ("cron init-db", "sample init-db", "sample seed --users 20"):
        assert app.test_cli_runner().invoke(args=command.split()).exit_code == 0
    with app.app_context():
        db.engine.dispose()
    with gunicorn(database, target="wsgi:app") as instance:
        answer = instance.post("daily-digest")
        page = rendered(f"http://127.0.0.1:{instance.port}/")

    assert answer.body["processed"] == 20
    assert page.count("Good morning, ") == 20
