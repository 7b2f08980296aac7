"""``flask cron``: the commands."""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import click
from flask import current_app
from flask.cli import AppGroup
from sqlalchemy import select
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.orm import Session

from .answers import body_of
from .durations import format_duration
from .exceptions import ConfigError
from .exclusive import work_exclusively
from .holders import Holder, all_holders
from .instance import with_pid
from .jobs import Job
from .limits import SHORT_TIMEOUT
from .results import Failed, Skipped
from .runner import run_job
from .session import end_clean_transaction
from .state import this_app, this_state
from .terminal import Instant, errors_told, print_table, stop
from .texts import error_text
from .transaction import GuardedTransaction

cron_commands = AppGroup("cron", help="Scheduled jobs: list them, run them, see who runs them.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

INIT_LOCK = ("cronlock", "init-db")
INIT_WAIT = "60s"
OUTCOME_LABELS = {
    "slot": "slot",
    "ran_at": "ran at",
    "held_by": "held by",
    "held_since": "since",
    "next_slot": "next slot",
}


@cron_commands.command("list")
@click.option("--at", type=Instant(), help="Reckon the slots from this moment, not from now.")
@json_option
def list_jobs(at: datetime | None, as_json: bool) -> None:
    """List the jobs, their schedules and next slots."""
    moment = at or datetime.now(UTC)
    records = [_job_record(job, moment) for job in this_state().jobs]
    if as_json:
        click.echo(json.dumps(records, indent=2))
        return
    if not records:
        click.echo("No jobs are registered: decorate a function with @cron.job.")
        return
    print_table(
        ["JOB", "SCHEDULE", "NEWEST SLOT", "NEXT SLOT", "TIMEOUT"],
        [
            [
                record["job"],
                record["schedule"] or "none: kept from overlapping only",
                record["newest_slot"] or "-",
                record["next_slot"] or "-",
                record["timeout"],
            ]
            for record in records
        ],
    )
    for record in records:
        for note in record["notes"]:
            click.echo(f"{record['job']}: {note}")


def _job_record(job: Job, moment: datetime) -> dict[str, Any]:
    config = this_state().config
    schedule = job.schedule(config.timezone)
    newest = schedule.newest(moment) if schedule else None
    upcoming = schedule.upcoming(moment, 5) if schedule else []
    return {
        "job": job.name,
        "schedule": str(schedule) if schedule else None,
        "newest_slot": newest.at.isoformat() if newest else None,
        "next_slot": upcoming[0].at.isoformat() if upcoming else None,
        "upcoming": [slot.at.isoformat() for slot in upcoming],
        "timeout": format_duration(job.timeout or config.timeout),
        "notes": list(schedule.notes) if schedule else [],
    }


@cron_commands.command("run")
@click.argument("name")
@click.option("--slot", type=Instant(), help="Run for this slot, not for the newest.")
@click.option("--force", is_flag=True, help="Run although it ran, is paused or late; uses no slot.")
@json_option
def run_command(name: str, slot: datetime | None, force: bool, as_json: bool) -> None:
    """Run a job. Exit status: 0 ran or skipped, 1 failed, 2 usage."""
    state = this_state()
    with errors_told(state.config.secrets):
        end_clean_transaction(state.db)
        outcome = run_job(this_app(), state, state.jobs.get(name), "cli", slot, force)
    record = body_of(outcome, state.config.secrets)
    if isinstance(outcome, Failed):
        record["error"] = error_text(outcome.error, state.config.secrets)
    click.echo(json.dumps(record) if as_json else _outcome_line(record))
    raise SystemExit(int(isinstance(outcome, Failed)))


def _outcome_line(record: dict[str, Any]) -> str:
    match record["outcome"]:
        case "ran":
            value = record["processed"]
            words = "ran" if value is None else f"ran: {json.dumps(value)}"
        case "skipped":
            words = f"skipped, {record['reason']}"
        case _:
            words = f"failed: {record['error']}"
    about = [f"{label} {record[key]}" for key, label in OUTCOME_LABELS.items() if record.get(key)]
    return f"{record['job']} {words}" + (f" ({', '.join(about)})" if about else "")


@cron_commands.command("holders")
@json_option
def list_holders(as_json: bool) -> None:
    """List who holds an advisory lock in this database: job, pid, instance, since, state."""
    state = this_state()
    config = state.config
    instance = with_pid(config.instance)
    with (
        errors_told(state.config.secrets),
        GuardedTransaction(state.db.engine, SHORT_TIMEOUT, instance) as tx,
    ):
        holders = all_holders(tx, config.namespace, state.jobs)
    if as_json:
        click.echo(json.dumps([_holder_record(holder) for holder in holders], indent=2))
    elif holders:
        rows = [_holder_row(_holder_record(holder)) for holder in holders]
        print_table(["JOB", "PID", "INSTANCE", "SINCE", "STATE"], rows)
    else:
        click.echo("No advisory lock is held in this database.")


def _holder_record(holder: Holder) -> dict[str, Any]:
    return {
        "job": holder.name,
        "key": holder.key,
        "pid": holder.pid,
        "instance": holder.who,
        "since": holder.since.isoformat(timespec="seconds") if holder.since else None,
        "held_for_seconds": (
            round((holder.seen_at - holder.since).total_seconds(), 1) if holder.since else None
        ),
        "state": holder.state,
        "ours": holder.ours,
        "overdue": holder.overdue,
    }


def _holder_row(record: dict[str, Any]) -> list[str]:
    notes = ["not one of our runs"] * (not record["ours"]) + ["overdue"] * record["overdue"]
    state = record["state"] or "unknown (grant pg_read_all_stats to see it)"
    return [
        record["job"] or f"key {record['key']}",
        str(record["pid"] or "-"),
        record["instance"],
        record["since"] or "unknown",
        ", ".join([state, *notes]),
    ]


@cron_commands.command("init-db")
def init_db() -> None:
    """Create the tables where they are missing; safe on several instances at once."""
    state = this_state()
    tables = state.ledger.tables
    # The apps of all namespaces share the tables, and so the lock.
    shared = replace(state, config=replace(state.config, namespace=""))

    def create(session: Session) -> None:
        connection = session.connection()
        try:
            state.db.metadata.create_all(connection, tables=tables)
        except ProgrammingError as error:
            raise ConfigError("run init-db as a role that may make the tables") from error
        try:
            for table in tables:
                connection.execute(select(table).limit(0))
        except ProgrammingError as error:
            raise ConfigError("the tables are of another version: run the migrations") from error

    with errors_told(state.config.secrets):
        created = work_exclusively(this_app(), shared, INIT_LOCK, create, wait=INIT_WAIT)
    if isinstance(created, Skipped):
        stop("another init-db is still at work; run it again.", 1)
    click.echo(f"The tables are there: {', '.join(table.fullname for table in tables)}.")


@cron_commands.command("secret")
def make_secret() -> None:
    """Print a fresh secret; put it into CRON_SECRET, here and at the scheduler."""
    click.echo(secrets.token_urlsafe(32))


@cron_commands.command("urls")
@click.option("--base", default="https://YOUR-APP", show_default=True, help="Scheme and host.")
@json_option
def list_urls(base: str, as_json: bool) -> None:
    """Print the URL of each job, and the command that calls it as a scheduler would."""
    config = this_state().config
    root = current_app.config["APPLICATION_ROOT"].rstrip("/")
    start = f"{base.rstrip('/')}{root}{config.url_prefix}"
    urls = {job.name: f"{start}/{job.name}" for job in this_state().jobs}
    if as_json:
        click.echo(json.dumps(urls, indent=2))
        return
    for url in urls.values():
        click.echo(f'curl --fail-with-body -X POST -H "Authorization: Bearer $CRON_SECRET" {url}')
