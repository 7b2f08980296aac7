"""An app with Flask-Migrate, for the ``flask db`` commands; its environment says where."""

from __future__ import annotations

import os
import sys

from flask import Flask
from flask_migrate import Migrate
from flask_sqlalchemy import SQLAlchemy

from flask_cronlock import CronLock

if os.environ.get("WITHOUT_QUEUE"):
    sys.modules["procrastinate"] = None  # type: ignore[assignment]

db = SQLAlchemy()


class Account(db.Model):  # type: ignore[name-defined, misc]
    id = db.Column(db.Integer, primary_key=True)


app = Flask(__name__)
app.config["SQLALCHEMY_DATABASE_URI"] = os.environ["DATABASE_URL"]
db.init_app(app)
Migrate(app, db, directory=os.environ["MIGRATIONS"])
cron = CronLock(db, app)
