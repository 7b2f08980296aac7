"""``flask cron items``: the items of tasks that need somebody's eye."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import click

from ..queue.docket import GIVEN_UP, Docket, Entry
from ..queue.records import State
from ..state import this_state
from .group import cron_commands, json_option
from .terminal import errors_told, print_table

SHOWN = [state for state in State if state is not State.DONE]
MOST_SHOWN = 100


@cron_commands.command("items")
@click.option(
    "--state", "states", type=click.Choice([*map(str, SHOWN)]), multiple=True, help="Only these."
)
@click.option("--retry", metavar="KEY", multiple=True, help="Defer this one anew.")
@click.option("--retry-all", is_flag=True, help="Defer all failed ones anew, or those of --state.")
@click.option("--task", help="With --retry-all: only of this task.")
@click.option("--settle", metavar="KEY", multiple=True, help="It was done, or need not be.")
@click.option("--limit", type=click.IntRange(min=1), help=f"So many.  [default: {MOST_SHOWN}]")
@json_option
def list_items(
    states: tuple[str, ...],
    retry: tuple[str, ...],
    retry_all: bool,
    task: str | None,
    settle: tuple[str, ...],
    limit: int | None,
    as_json: bool,
) -> None:
    """List items that are in doubt, failed, waiting to be tried again, or being tried.

    An item that is deferred anew has its old key, so a provider that knows it does it once.
    """
    changes = bool(retry or settle or retry_all)
    chosen = [State(name) for name in states]
    _refuse_ignored(
        {
            "--task goes with --retry-all.": task and not retry_all,
            "--json and --limit are for the list alone.": changes and (as_json or limit),
            "--state goes with the list, or with --retry-all.": changes
            and chosen
            and not retry_all,
            "--retry-all is for what is in doubt or failed: the rest is tried again by itself.": (
                retry_all and not set(chosen) <= set(GIVEN_UP)
            ),
        }
    )
    state = this_state()
    with errors_told(state.config.secrets), state.brief() as tx:
        docket = Docket(tx, state)
        if changes:
            count = docket.retry_all(chosen or [State.FAILED], task) if retry_all else 0
            count += _change(docket, retry, settle)
            tx.prove()
            tx.commit()
            click.echo(f"{count} deferred anew, {len(settle)} settled.")
            return
        entries = docket.list(chosen or SHOWN, limit or MOST_SHOWN)
    if as_json:
        click.echo(json.dumps([entry.as_json() for entry in entries], indent=2))
        return
    _print(entries, limit or MOST_SHOWN)


def _refuse_ignored(faults: Mapping[str, object]) -> None:
    """End the command where an option that was given would be ignored."""
    for words in filter(faults.get, faults):
        raise click.UsageError(words)


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
