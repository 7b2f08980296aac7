"""The sample's outbox page, its health check, and its gunicorn hook."""

from __future__ import annotations

import runpy
import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import select, text

from sample_app import create_app
from sample_app.digest import ZONE, write_digests
from sample_app.extensions import cron, db

from ..support.databases import Database
from ..support.samples import listed

ROOT = Path(__file__).resolve().parents[2]
SLOT = datetime(2026, 10, 25, 7, tzinfo=ZoneInfo(ZONE))


@pytest.fixture
def app(database: Database) -> Iterator[Flask]:
    app = create_app({"SQLALCHEMY_DATABASE_URI": database.url})
    yield app
    with app.app_context():
        db.engine.dispose()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    """Return a client of an application with 60 subscribers, made by its commands."""
    for command in (["init-db"], ["seed", "--users", "60"], ["seed", "--users", "60"]):
        result = app.test_cli_runner().invoke(args=["sample", *command])
        assert result.exit_code == 0, result.output
    return app.test_client()


def mail(app: Flask, slot: datetime) -> None:
    with app.app_context():
        db.session.execute(text("UPDATE users SET last_digest_at = NULL"))
        assert write_digests(db.session(), slot) == 60
        db.session.commit()


def test_an_empty_outbox_tells_how_to_fill_it(client: FlaskClient) -> None:
    page = client.get("/").text
    assert "cron run daily-digest" in page
    assert "Most per user" not in page


def test_the_page_counts_the_digests_of_a_slot_in_local_time(
    app: Flask, client: FlaskClient
) -> None:
    mail(app, SLOT)
    page = client.get("/").text
    assert "Sun 25 Oct 2026, 07:00" in page
    assert "1 ✓" in page


@pytest.mark.parametrize(
    ("every", "words"),
    [("", "One digest a day for each subscriber, at 07:00 in Berlin."), ("5s", "every 5s for")],
)
def test_the_page_tells_when_the_digest_is_due(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch, every: str, words: str
) -> None:
    monkeypatch.setenv("DIGEST_EVERY", every)
    assert words in client.get("/").text


def test_a_digest_written_twice_is_shown(app: Flask, client: FlaskClient) -> None:
    mail(app, SLOT)
    mail(app, SLOT)
    page = client.get("/").text
    assert "2 ✗ doubled" in page


def test_every_digest_is_on_one_page(app: Flask, client: FlaskClient) -> None:
    mail(app, SLOT)
    seen, pages = listed(client, "/")
    assert len(seen) == len(set(seen)) == 60
    assert pages == 3


@pytest.mark.parametrize("before", ["0", "-1", "x", "", "9" * 30])
def test_any_position_is_answered_with_a_page(client: FlaskClient, before: str) -> None:
    assert client.get(f"/?before={before}").status_code == 200


def test_names_are_escaped(app: Flask, client: FlaskClient) -> None:
    with app.app_context():
        db.session.execute(text("UPDATE users SET name = '<script>'"))
        db.session.commit()
    mail(app, SLOT)
    page = client.get("/").text
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_missing_tables_are_answered_with_the_command_that_creates_them(app: Flask) -> None:
    answer = app.test_client().get("/")
    assert answer.status_code == 503
    assert "flask --app wsgi sample init-db" in answer.text


def test_the_health_check_follows_the_database(app: Flask) -> None:
    assert app.test_client().get("/healthz").status_code == 200
    nowhere = create_app(
        {"SQLALCHEMY_DATABASE_URI": "postgresql+psycopg://nobody@127.0.0.1:1/none"}
    )
    assert nowhere.test_client().get("/healthz").status_code == 503


def test_a_preloaded_worker_leaves_the_inherited_connection_alone(
    app: Flask, database: Database
) -> None:
    hook = runpy.run_path(str(ROOT / "gunicorn.conf.py"))["post_fork"]
    backend = select(text("pg_backend_pid()"))
    with app.app_context(), db.engine.connect() as connection:
        inherited, driver = connection.scalar(backend), connection.connection.driver_connection
    for preload, same in ((False, True), (True, False)):
        server = SimpleNamespace(
            cfg=SimpleNamespace(preload_app=preload), app=SimpleNamespace(wsgi=lambda: app)
        )
        hook(server, None)
        with app.app_context(), db.engine.connect() as connection:
            assert (connection.scalar(backend) == inherited) is same
    assert driver is not None
    assert database.value("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", inherited) == 1
    driver.close()


@pytest.mark.parametrize(("wanted", "clocks"), [("", 0), ("1", 1)])
@pytest.mark.usefixtures("client")
def test_a_worker_has_a_clock_only_where_it_is_asked_for(
    app: Flask, monkeypatch: pytest.MonkeyPatch, wanted: str, clocks: int
) -> None:
    monkeypatch.setenv("CLOCK", wanted)
    hook = runpy.run_path(str(ROOT / "gunicorn.conf.py"))["post_worker_init"]
    hook(SimpleNamespace(app=SimpleNamespace(wsgi=lambda: app)))
    names = [thread.name for thread in threading.enumerate()]
    clock = cron.start_clock(app)
    assert clock is not None
    clock.stop()
    assert names.count("cronlock-clock") == clocks
