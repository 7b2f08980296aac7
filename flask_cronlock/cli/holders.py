"""``flask cron holders``: who holds which lock."""

from __future__ import annotations

import json
from typing import Any

import click

from ..holders import Holder, all_holders
from ..state import this_state
from .group import cron_commands, json_option
from .terminal import errors_told, print_table


@cron_commands.command("holders")
@json_option
def list_holders(as_json: bool) -> None:
    """List who holds an advisory lock in this database: job, pid, instance, since, state."""
    state = this_state()
    config = state.config
    with errors_told(state.config.secrets), state.brief() as tx:
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
