"""``flask cron worker``: the process that calls tasks."""

from __future__ import annotations

import logging
import signal
from types import FrameType

import click

from ..durations import parse_duration
from ..exceptions import ConfigError
from ..queue.extra import require_queue
from ..queue.task import JOBS_QUEUE
from ..queue.tasks import queue_name
from ..sqlerrors import driver_error
from ..state import AppState, this_app, this_state
from ..telling import known_words
from ..texts import error_text
from .clock import SIGNALS, show_log
from .group import cron_commands
from .terminal import errors_told, stop

TOLD_BY_US = "job_error"
"""The action of Procrastinate's records that hold a row's whole arguments."""


@cron_commands.command("worker")
@click.option("--queues", help="Only these, with commas between.  [default: those of all tasks]")
@click.option("--concurrency", type=int, help="How many rows at once.  [default: 4]")
@click.option(
    "--grace", default="30s", show_default=True, help="How long rows may go on at the end."
)
@click.option("--until-empty", is_flag=True, help="End when nothing is due.")
def run_worker(queues: str | None, concurrency: int | None, grace: str, until_empty: bool) -> None:
    """Work off what is on the queue, until SIGTERM or Ctrl-C; a second one ends it at once."""
    state = this_state()
    show_log()
    quieten_procrastinate()
    with errors_told(state.config.secrets):
        require_queue()
        from ..queue.connecting import wait_for_way
        from ..queue.worker import QueueWorker, count_rows_at_once

        names = _names(state, queues)
        count = count_rows_at_once(state.db.engine.pool, concurrency)
        way, end = wait_for_way(state), parse_duration(grace, "grace")
        worker = QueueWorker(this_app(), state, way, names, count, end, until_empty)

    def wind_up(_: int, __: FrameType | None) -> None:
        for either in SIGNALS:
            signal.signal(either, signal.SIG_DFL)
        worker.stop()

    for number in SIGNALS:
        signal.signal(number, wind_up)
    try:
        worker.run()
    except Exception as error:
        secrets = (*state.config.secrets, *way.secrets)
        said = known_words(error, secrets) or error_text(driver_error(error) or error, secrets)
        stop(f"the worker failed: {said}", 1)


def _names(state: AppState, wanted: str | None) -> list[str]:
    """Return the names of the queues in the database."""
    runs = {JOBS_QUEUE} if any(job.on_worker for job in state.jobs) else set()
    known = sorted({task.queue for task in state.tasks} | runs)
    if not known:
        raise ConfigError(
            'no task is registered here, and no job on="worker": import their module where the app '
            "is made (FLASK_APP, or the factory)"
        )
    chosen = known if wanted is None else [name.strip() for name in wanted.split(",")]
    for name in chosen:
        if name not in known:
            hint = f"no task is on the queue {name!r}; there are {', '.join(known)}"
            raise click.BadParameter(hint, param_hint="--queues")
    return [queue_name(state.config.namespace, name) for name in dict.fromkeys(chosen)]


def quieten_procrastinate() -> None:
    """Let only warnings through, and none with a row's whole arguments: we tell of these."""
    logging.getLogger("procrastinate").setLevel(logging.WARNING)
    logging.getLogger("procrastinate.worker").addFilter(_not_told_by_us)
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)


def _not_told_by_us(record: logging.LogRecord) -> bool:
    return getattr(record, "action", None) != TOLD_BY_US
