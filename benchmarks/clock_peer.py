"""As many daily jobs in APScheduler, kept in PostgreSQL, and at will one that is due each second.

Prints a line when it has begun, and one for each run of that job: how many seconds it is late.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta

from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler

from sample_app.digest import ZONE


def nothing() -> None:
    """Be the job that costs nothing."""


def tell() -> None:
    """Say how long after the full second it is called."""
    print(f"late {time.time() % 1}", flush=True)


def main() -> None:
    store = SQLAlchemyJobStore(url=os.environ["DATABASE_URL"])
    scheduler = BackgroundScheduler(jobstores={"default": store}, timezone=ZONE)
    hour = (datetime.now(scheduler.timezone).hour + 12) % 24
    for number in range(int(os.environ["BENCHMARK_JOBS"])):
        scheduler.add_job(nothing, "cron", hour=hour, id=f"daily-{number}", replace_existing=True)
    if os.environ.get("BENCHMARK_EACH_SECOND"):
        start = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2)
        scheduler.add_job(tell, "interval", seconds=1, start_date=start, id="each-second")
    scheduler.start()
    print("The scheduler began", flush=True)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
