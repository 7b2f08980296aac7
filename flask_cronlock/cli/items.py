"""``flask cron items``: the items of tasks that need somebody's eye."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from ..instance import with_pid
from ..limits import SHORT_TIMEOUT
from ..queue.docket import Docket, Entry
from ..queue.records import State
from ..state import this_state
from ..transaction import GuardedTransaction
from .group import cron_commands, json_option
from .terminal import errors_told, print_table

SHOWN = [state for state in State if state is not State.DONE]


@cron_commands.command("items")
@click.option(
    "--state", "states", type=click.Choice([*map(str, SHOWN)]), multiple=True, help="Only these."
)
@click.option("--retry", metavar="KEY", multiple=True, help="Defer this one anew.")
@click.option("--retry-all", is_flag=True, help="Defer all failed ones anew, or those of --state.")
@click.option("--task", help="With --retry-all: only of this task.")
@click.option("--settle", metavar="KEY", multiple=True, help="It was done, or need not be.")
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True)
@json_option
def list_items(
    states: tuple[str, ...],
    retry: tuple[str, ...],
    retry_all: bool,
    task: str | None,
    settle: tuple[str, ...],
    limit: int,
    as_json: bool,
) -> None:
    """List items that are in doubt, failed, waiting to be tried again, or being tried.

    An item that is deferred anew has its old key, so a provider that knows it does it once.
    """
    if task and not retry_all:
        raise click.UsageError("--task goes with --retry-all.")
    state = this_state()
    instance = with_pid(state.config.instance)
    with (
        errors_told(state.config.secrets),
        GuardedTransaction(state.db.engine, SHORT_TIMEOUT, instance) as tx,
    ):
        docket = Docket(tx, state)
        chosen = [State(name) for name in states]
        if retry or settle or retry_all:
            count = docket.retry_all(chosen or [State.FAILED], task) if retry_all else 0
            count += _change(docket, retry, settle)
            tx.prove()
            tx.commit()
            click.echo(f"{count} deferred anew, {len(settle)} settled.")
            return
        entries = docket.list(chosen or SHOWN, limit)
    if as_json:
        click.echo(json.dumps([entry.as_json() for entry in entries], indent=2))
        return
    _print(entries, limit)


def _change(docket: Docket, retry: tuple[str, ...], settle: tuple[str, ...]) -> int:
    """Change all of the items that were named, or, with the first that cannot be, none."""
    for key in retry:
        docket.retry(key)
    for key in settle:
        docket.settle(key)
    return len(retry)


def _print(entries: Sequence[Entry], limit: int) -> None:
    if not entries:
        click.echo("No item is in doubt, failed, waiting to be tried again, or being tried.")
        return
    rows = [
        [e.state, e.task, str(e.attempts), f"{e.since:%Y-%m-%d %H:%M:%S%z}", e.key, e.error or "-"]
        for e in entries
    ]
    print_table(["STATE", "TASK", "ATTEMPTS", "SINCE", "KEY", "ERROR"], rows)
    if len(entries) == limit:
        click.echo(f"The newest {limit}; --limit shows more.")
