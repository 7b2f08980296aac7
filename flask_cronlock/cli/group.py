"""The group ``flask cron``, and what its commands share."""

from __future__ import annotations

import click
from flask.cli import AppGroup

cron_commands = AppGroup("cron", help="Scheduled jobs: list them, run them, see who runs them.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
