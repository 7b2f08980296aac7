"""Where the sample application takes its database from."""

from __future__ import annotations

import pytest

from sample_app import embedded
from sample_app.config import clock_wanted, digest_every, normalise, settings
from sample_app.digest import ZONE, times

REST = "user:p%40ss@db.example.com:5432/app?sslmode=require"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_a_platforms_url_is_opened_by_psycopg_3(scheme: str) -> None:
    assert normalise(f"{scheme}://{REST}") == f"postgresql+psycopg://{REST}"


def test_another_driver_that_is_named_is_kept() -> None:
    assert normalise(f"postgresql+pg8000://{REST}") == f"postgresql+pg8000://{REST}"


def test_database_url_is_used_without_surrounding_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", f" postgres://{REST}\n")
    assert settings({})["SQLALCHEMY_DATABASE_URI"] == f"postgresql+psycopg://{REST}"


@pytest.mark.parametrize("unset", [None, "", "  "])
def test_without_database_url_the_embedded_server_is_asked(
    monkeypatch: pytest.MonkeyPatch, unset: str | None
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    if unset is not None:
        monkeypatch.setenv("DATABASE_URL", unset)
    monkeypatch.setattr(embedded, "database_url", lambda: "postgresql+psycopg:///embedded")
    assert settings({})["SQLALCHEMY_DATABASE_URI"] == "postgresql+psycopg:///embedded"


def test_a_url_that_is_given_starts_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setattr(embedded, "database_url", lambda: pytest.fail("started a server"))
    given = {"SQLALCHEMY_DATABASE_URI": "postgresql+psycopg:///given"}
    assert settings(given)["SQLALCHEMY_DATABASE_URI"] == "postgresql+psycopg:///given"


def test_statements_are_never_prepared_and_no_secret_is_set() -> None:
    chosen = settings({"SQLALCHEMY_DATABASE_URI": "postgresql+psycopg:///given"})
    assert chosen["SQLALCHEMY_ENGINE_OPTIONS"]["connect_args"] == {"prepare_threshold": None}
    assert not [key for key in chosen if "SECRET" in key]


@pytest.mark.parametrize(("value", "every"), [("5s", "5s"), (" 15m ", "15m"), ("", None)])
def test_the_digests_interval_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, value: str, every: str | None
) -> None:
    monkeypatch.setenv("DIGEST_EVERY", value)
    assert digest_every() == every


def test_the_digest_is_due_in_the_morning_unless_there_is_an_interval() -> None:
    assert times(None) == {"schedule": "0 7 * * *", "tz": ZONE}
    assert times("5s") == {"every": "5s", "catch_up": "all"}


@pytest.mark.parametrize(
    ("value", "wanted"), [("1", True), ("true", True), ("0", False), ("", False), (None, False)]
)
def test_a_clock_inside_the_web_server_is_opted_into(
    monkeypatch: pytest.MonkeyPatch, value: str | None, wanted: bool
) -> None:
    monkeypatch.delenv("CLOCK", raising=False)
    if value is not None:
        monkeypatch.setenv("CLOCK", value)
    assert clock_wanted() is wanted
