"""``flask cron run``."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import click

from ..answers import body_of
from ..results import Failed
from ..runner import run_job
from ..session import end_clean_transaction
from ..state import this_app, this_state
from ..texts import error_text
from .group import cron_commands, json_option
from .terminal import Instant, errors_told

OUTCOME_LABELS = {
    "slot": "slot",
    "ran_at": "ran at",
    "held_by": "held by",
    "held_since": "since",
    "next_slot": "next slot",
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
