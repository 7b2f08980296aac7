"""``flask cron init-db`` and ``secret``: what an app needs once."""

from __future__ import annotations

import secrets
from dataclasses import replace

import click
from sqlalchemy import select
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.orm import Session

from ..exceptions import ConfigError
from ..exclusive import work_exclusively
from ..queue.extra import queue_is_installed
from ..queue.schema import Change, bring_up_to_date
from ..results import Skipped
from ..state import this_app, this_state
from .group import cron_commands
from .terminal import errors_told, stop

INIT_LOCK = ("cronlock", "init-db")
INIT_WAIT = "60s"


@cron_commands.command("init-db")
def init_db() -> None:
    """Create the tables where they are missing; safe on several instances at once."""
    state = this_state()
    tables = state.tables
    # The apps of all namespaces share the tables, and so the lock.
    shared = replace(state, config=replace(state.config, namespace=""))

    def create(session: Session) -> Change | None:
        connection = session.connection()
        try:
            state.db.metadata.create_all(connection, tables=tables)
            change = bring_up_to_date(connection) if queue_is_installed() else None
        except ProgrammingError as error:
            raise ConfigError("run init-db as a role that may make the tables") from error
        try:
            for table in tables:
                connection.execute(select(table).limit(0))
        except ProgrammingError as error:
            raise ConfigError("the tables are of another version: run the migrations") from error
        return change

    with errors_told(state.config.secrets):
        created = work_exclusively(this_app(), shared, INIT_LOCK, create, wait=INIT_WAIT)
    if isinstance(created, Skipped):
        stop("another init-db is still at work; run it again.", 1)
    click.echo(f"The tables are there: {', '.join(table.fullname for table in tables)}.")
    if created.value is not None:
        click.echo(f"Procrastinate's tables: {created.value}.")


@cron_commands.command("secret")
def make_secret() -> None:
    """Print a fresh secret; put it into CRON_SECRET, here and at the scheduler."""
    click.echo(secrets.token_urlsafe(32))
