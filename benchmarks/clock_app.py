"""An app of many daily jobs, none of them due soon, and at will one that is due each second."""

from __future__ import annotations

import os

from flask import Flask
from flask_sqlalchemy import SQLAlchemy

from flask_cronlock import CronLock
from sample_app.digest import ZONE

from .app import SCHEDULE, nothing

db = SQLAlchemy()
cron = CronLock(db)
EACH_SECOND = "each-second"

for number in range(int(os.environ["BENCHMARK_JOBS"])):
    cron.job(f"daily-{number}", schedule=SCHEDULE, tz=ZONE)(nothing)
if os.environ.get("BENCHMARK_EACH_SECOND"):
    cron.job(EACH_SECOND, every="1s")(nothing)


def create_app() -> Flask:
    app = Flask("clock-benchmark")
    app.config["SQLALCHEMY_DATABASE_URI"] = os.environ["DATABASE_URL"]
    db.init_app(app)
    cron.init_app(app)
    with app.app_context():
        db.create_all()
    return app
