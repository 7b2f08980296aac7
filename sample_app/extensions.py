"""The two extensions, made once and bound to the application by `create_app`."""

from __future__ import annotations

from flask_sqlalchemy import SQLAlchemy

from flask_cronlock import CronLock

db = SQLAlchemy()
cron = CronLock(db)
