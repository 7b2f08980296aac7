"""The worker's own way to the database: which, and whether the queue's notifications come by it."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import psycopg
from psycopg.conninfo import make_conninfo
from sqlalchemy import make_url, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from ..exceptions import ConfigError, DatabaseUnreachable, NotPrimary, TablesMissing
from ..instance import with_pid
from ..limits import SERVER
from ..sqlerrors import as_unavailable
from ..state import AppState
from ..texts import error_text
from .outage import Outage

logger = logging.getLogger("flask_cronlock")

LISTENING_POLL = 5.0
"""Seconds between looks that find what no notification told of: what is due only now, above all."""
POLL = 1.0
HEARD_WITHIN = 2.0
"""Seconds that a notification may take."""
CHANNEL = "cronlock_heard"
KEEP_ALIVE = {"connect_timeout": 10, "keepalives_idle": 15, "tcp_user_timeout": 20_000}
"""A network that swallows packets is noticed before the worker counts as gone."""

PLACE = f"""
SELECT {SERVER} AS server, current_database() AS database,
       to_regclass('procrastinate_jobs')::oid::bigint AS queue,
       pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean AS read_only
"""


@dataclass(frozen=True)
class Way:
    """How a worker connects."""

    parameters: Mapping[str, Any] = field(repr=False)
    """For ``psycopg.connect``."""
    direct: bool
    listens: bool

    @property
    def poll_every(self) -> float:
        return LISTENING_POLL if self.listens else POLL

    @property
    def secrets(self) -> tuple[bytes, ...]:
        """What no log may show."""
        password = self.parameters.get("password")
        return (str(password).encode(),) if password else ()

    def __str__(self) -> str:
        how = "listening" if self.listens else "polling each second"
        return f"direct, {how}" if self.direct else how


@dataclass(frozen=True, slots=True)
class Place:
    """Where a connection leads."""

    server: str
    database: str
    queue: int | None
    read_only: bool


def wait_for_way(state: AppState) -> Way:
    """Return :func:`find_way`'s, as soon as the database answers."""
    secrets = state.config.secrets
    outage = Outage("The database does not answer yet", "The database answers", secrets)
    while True:
        try:
            way = find_way(state)
        except (SQLAlchemyError, DatabaseUnreachable) as error:
            if not isinstance(as_unavailable(error) or error, DatabaseUnreachable):
                raise
            time.sleep(outage.note(error))
        else:
            outage.end()
            return way


def find_way(state: AppState) -> Way:
    """Return the way that ``CRONLOCK_WORKER_URL`` names, or else the app's own; it was tried.

    :raises ConfigError: when the URL leads elsewhere than the app's own.
    :raises DatabaseUnreachable: when nothing answers there yet.
    :raises TablesMissing: when the queue has no tables.
    """
    place, app_parameters = _apps_place(state)
    if place.queue is None:
        raise TablesMissing("those of the queue")
    if place.read_only:
        raise NotPrimary
    named = {"fallback_application_name": f"cronlock-worker {with_pid(state.config.instance)}"[:63]}
    if state.config.worker_url is None:
        return Way({**KEEP_ALIVE, **named, **app_parameters}, direct=False, listens=False)
    parameters = {**KEEP_ALIVE, **named, **_parameters_of(state, state.config.worker_url)}
    listens = _try_out(state, parameters, place)
    if not listens:
        logger.warning(
            "CRONLOCK_WORKER_URL leads through a pooler, where nothing can listen, so the worker "
            "looks each second: give the database's own address.",
            extra={"action": "worker_deaf"},
        )
    return Way(parameters, direct=listens, listens=listens)


def _apps_place(state: AppState) -> tuple[Place, dict[str, Any]]:
    """Return where the app's own engine leads, and the parameters that are in effect there."""
    with state.db.engine.connect() as connection:
        place = Place(*connection.execute(text(PLACE)).one())
        driver = connection.connection.driver_connection
        if not isinstance(driver, psycopg.Connection):
            raise ConfigError("a worker needs psycopg: begin the URL with postgresql+psycopg://")
        parameters: dict[str, Any] = dict(driver.info.get_parameters())
        if driver.info.password:
            parameters["password"] = driver.info.password
    return place, parameters


def _parameters_of(state: AppState, url: str) -> dict[str, Any]:
    try:
        _, given = state.db.engine.dialect.create_connect_args(make_url(url))
        parameters: dict[str, Any] = {
            name: value for name, value in given.items() if isinstance(value, str | int)
        }
        make_conninfo(**parameters)
    except (ArgumentError, ValueError, psycopg.ProgrammingError):
        # What it says may hold the password.
        raise ConfigError(
            "CRONLOCK_WORKER_URL is no URL such as postgresql://user:password@host:5432/name"
        ) from None
    return parameters


def _try_out(state: AppState, parameters: Mapping[str, Any], apps: Place) -> bool:
    """Return whether a notification comes by this way, which must lead to where the app's leads."""
    way = Way(parameters, direct=True, listens=True)
    try:
        with psycopg.connect(**parameters, autocommit=True, prepare_threshold=None) as connection:
            row = connection.execute(PLACE).fetchone()
            assert row is not None
            _check(Place(*row), apps)
            return not _is_pooled(connection) and _hears(state, connection)
    except psycopg.Error as error:
        said = error_text(error, (*state.config.secrets, *way.secrets))
        if isinstance(as_unavailable(error), DatabaseUnreachable):
            raise DatabaseUnreachable(f"that of CRONLOCK_WORKER_URL ({said})") from None
        raise ConfigError(
            f"CRONLOCK_WORKER_URL cannot be used: give the address of the app's own database, past "
            f"its pooler ({said})"
        ) from None


def _check(there: Place, apps: Place) -> None:
    if there.read_only:
        raise ConfigError(
            "CRONLOCK_WORKER_URL leads to a server that takes no writes: name the primary"
        )
    if (there.server, there.database) != (apps.server, apps.database):
        raise ConfigError(
            "CRONLOCK_WORKER_URL leads to another database than SQLALCHEMY_DATABASE_URI: name the "
            "same one, past its pooler"
        )
    if there.queue != apps.queue:
        raise ConfigError(
            "CRONLOCK_WORKER_URL finds other queue tables than the app, or none: name the same "
            "role, with the same search_path"
        )


def _is_pooled(connection: psycopg.Connection[Any]) -> bool:
    """Tell whether a pooler is between: it greets with a key that is no backend's.

    Its backends would go on listening for whoever comes after us.
    """
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return row != (connection.info.backend_pid,)


def _hears(state: AppState, connection: psycopg.Connection[Any]) -> bool:
    """Tell whether a notification comes: what is between may pass none on."""
    token = uuid4().hex
    connection.execute(f"LISTEN {CHANNEL}")
    with state.db.engine.begin() as other:
        other.execute(
            text("SELECT pg_notify(:channel, :token)"), {"channel": CHANNEL, "token": token}
        )
    heard = (notify.payload == token for notify in connection.notifies(timeout=HEARD_WITHIN))
    return any(heard)
