"""``flask cron list`` and ``urls``: what is registered."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import click
from flask import current_app

from ..durations import format_duration
from ..jobs import Job
from ..state import this_state
from .group import cron_commands, json_option
from .terminal import Instant, print_table


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
