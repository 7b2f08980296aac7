"""``flask cron clock``: the embedded scheduler as a process."""

from __future__ import annotations

import logging
import signal
from types import FrameType

import click
from flask.logging import default_handler, has_level_handler

from ..clock import Clock
from ..durations import parse_duration
from ..state import this_app, this_state
from .group import cron_commands
from .terminal import errors_told

logger = logging.getLogger("flask_cronlock")

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@cron_commands.command("clock")
@click.option("--workers", type=int, help="How many jobs may run at once.  [default: up to 8]")
@click.option(
    "--grace", default="25s", show_default=True, help="How long runs may go on at the end."
)
def run_clock(workers: int | None, grace: str) -> None:
    """Fire every slot of every job until SIGTERM or Ctrl-C; a second one ends it at once."""
    state = this_state()
    with errors_told(state.config.secrets):
        clock = Clock(this_app(), state, workers, parse_duration(grace, "grace"))
    show_log()

    def stop(_: int, __: FrameType | None) -> None:
        for either in SIGNALS:
            signal.signal(either, signal.SIG_DFL)
        clock.stop()

    for number in SIGNALS:
        signal.signal(number, stop)
    clock.run()


def show_log() -> None:
    """Print what the clock logs, unless the app has set up where its log goes."""
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.INFO)
    if not has_level_handler(logger):
        logger.addHandler(default_handler)
