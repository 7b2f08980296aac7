"""Configuration, from the environment: database, clock, the digest's times, the mail server."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

YES = ("1", "true", "yes", "on")


def settings(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the application's settings; `overrides` win.

    `CRON_SECRET` is not read here: Flask-CronLock takes it from the environment itself.
    """
    chosen: dict[str, Any] = {
        # A prepared statement would outlive its transaction on a pooler's shared connection.
        "SQLALCHEMY_ENGINE_OPTIONS": {"connect_args": {"prepare_threshold": None}},
        **overrides,
    }
    if "SQLALCHEMY_DATABASE_URI" not in chosen:
        chosen["SQLALCHEMY_DATABASE_URI"] = database_url()
    return chosen


def clock_wanted() -> bool:
    """Tell whether `CLOCK=1` asks for a clock in each worker of the web server."""
    return variable("CLOCK").lower() in YES


def digest_every() -> str | None:
    """Return the interval `DIGEST_EVERY`, such as `5s`, if the digest is to have one."""
    return variable("DIGEST_EVERY") or None


def smtp_url() -> str | None:
    """Return the mail server's `SMTP_URL`, such as `smtp://127.0.0.1:2525`, if there is one."""
    return variable("SMTP_URL") or None


def variable(name: str) -> str:
    """Return the environment's `name`, empty if it is not set."""
    return os.environ.get(name, "").strip()


def database_url() -> str:
    """Return `DATABASE_URL` for psycopg 3, or the URL of a local PostgreSQL started on demand."""
    if url := variable("DATABASE_URL"):
        return normalise(url)
    from . import embedded

    return embedded.database_url()


def normalise(url: str) -> str:
    """Return `url` with psycopg 3 named as the driver, unless it names a driver itself.

    Hosting platforms hand out `postgres://`, which SQLAlchemy does not know, and `postgresql://`,
    whose driver depends on SQLAlchemy's version.
    """
    scheme, separator, rest = url.partition("://")
    if scheme in ("postgres", "postgresql"):
        scheme = "postgresql+psycopg"
    return f"{scheme}{separator}{rest}"
