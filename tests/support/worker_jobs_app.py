"""``queue_app`` with a job for workers, of as many seconds as JOB_SECONDS says."""

from __future__ import annotations

import os
import time

from .queue_app import NOTE, app, cron, db, mark

__all__ = ["app"]


@cron.job("nightly", every="1000d", timeout="2h", on="worker")
def nightly() -> str:
    mark("begun", "nightly")
    db.session.execute(NOTE, {"name": "nightly"})
    time.sleep(float(os.environ.get("JOB_SECONDS", "0")))
    mark("ended", "nightly")
    return "done"
