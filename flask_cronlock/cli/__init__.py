"""``flask cron``: the commands."""

from __future__ import annotations

from . import clock, holders, items, listing, running, setup, worker
from .group import cron_commands

__all__ = ["clock", "cron_commands", "holders", "items", "listing", "running", "setup", "worker"]
