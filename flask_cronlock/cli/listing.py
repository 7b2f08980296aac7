"""``flask cron list`` and ``urls``: what is registered."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import click
from flask import current_app

from ..durations import format_duration
from ..jobs import CatchUp, Job
from ..orphans import MOST_COUNTED, Orphan, find_orphans
from ..state import this_state
from .group import cron_commands, json_option
from .terminal import Instant, errors_told, print_table

SLOTS_SHOWN = 5


@cron_commands.command("list")
@click.option("--at", type=Instant(), help="Show the slots to come from this moment, not from now.")
@click.option("--orphans", is_flag=True, help="List names in the tables that no job has.")
@json_option
def list_jobs(at: datetime | None, orphans: bool, as_json: bool) -> None:
    """List the jobs, their schedules and next slots."""
    if orphans:
        if at is not None:
            raise click.UsageError("--orphans have no slots to come: leave out --at.")
        _list_orphans(as_json)
        return
    records = [_job_record(job, at or datetime.now(UTC)) for job in this_state().jobs]
    if as_json:
        click.echo(json.dumps(records, indent=2))
    elif records:
        _print_jobs(records, in_full=at is not None)
    else:
        click.echo("No jobs are registered: decorate a function with @cron.job.")


def _job_record(job: Job, moment: datetime) -> dict[str, Any]:
    config = this_state().config
    schedule = job.schedule(config.timezone)
    newest = schedule.newest(moment) if schedule else None
    upcoming = schedule.upcoming(moment, SLOTS_SHOWN) if schedule else []
    catches_up = job.catch_up is CatchUp.ALL
    return {
        "job": job.name,
        "schedule": str(schedule) if schedule else None,
        "catch_up": job.catch_up.value if schedule else None,
        "max_catch_up": job.max_catch_up if catches_up else None,
        "newest_slot": newest.at.isoformat() if newest else None,
        "next_slot": upcoming[0].at.isoformat() if upcoming else None,
        "upcoming": [slot.at.isoformat() for slot in upcoming],
        "timeout": format_duration(job.timeout or config.timeout),
        "hints": list(schedule.hints) if schedule else [],
    }


def _print_jobs(records: list[dict[str, Any]], in_full: bool) -> None:
    """Print one line a job, or *in_full* one for each slot to come, and the hints."""
    heads = ["JOB", "SCHEDULE", "CATCH UP", "TIMEOUT", "NEWEST SLOT", "NEXT SLOT"]
    rows: list[list[str]] = []
    for record in records:
        first, *more = record["upcoming"] or ["-"]
        rows.append([*_about_job(record), first])
        if in_full:
            rows.extend([*[""] * (len(heads) - 1), slot] for slot in more)
    if in_full:
        heads[-1] += "S"
    print_table(heads, rows)
    for record in records:
        for hint in record["hints"]:
            click.echo(f"{record['job']}: {hint}")


def _about_job(record: dict[str, Any]) -> list[str]:
    most = record["max_catch_up"]
    return [
        record["job"],
        record["schedule"] or "none: kept from overlapping only",
        f"all, at most {most}" if most else record["catch_up"] or "-",
        record["timeout"],
        record["newest_slot"] or "-",
    ]


def _list_orphans(as_json: bool) -> None:
    state = this_state()
    names = [name for job in state.jobs for name in job.names]
    with errors_told(state.config.secrets), state.brief() as tx:
        orphans = find_orphans(tx, state.ledger, state.config.namespace, names)
    records = [_orphan_record(orphan) for orphan in orphans]
    if as_json:
        click.echo(json.dumps(records, indent=2))
        return
    if not records:
        click.echo("Every name in the tables is, or was, that of a registered job.")
        return
    print_table(["NAME", "RUNS", "FAILED", "NEWEST SLOT"], [_orphan_row(r) for r in records])
    click.echo(
        "No registered job has these names. Where a job was renamed, give it the old name in "
        "previous_names=, so that what ran stays done; the others are history, and in nobody's way."
    )


def _orphan_record(orphan: Orphan) -> dict[str, Any]:
    newest = orphan.newest_slot
    return {
        "name": orphan.name,
        "runs": orphan.runs,
        "failed": orphan.attempts,
        "newest_slot": newest.astimezone(UTC).isoformat() if newest else None,
    }


def _orphan_row(record: dict[str, Any]) -> list[str]:
    counts = [
        str(count) if count <= MOST_COUNTED else f"over {MOST_COUNTED}"
        for count in (record["runs"], record["failed"])
    ]
    return [record["name"], *counts, record["newest_slot"] or "-"]


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
