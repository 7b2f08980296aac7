"""A small application with a daily digest, to see Flask-CronLock at work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flask import Flask


def create_app(config: Mapping[str, Any] | None = None) -> Flask:
    """Return the application; `config` wins over what the environment says."""
    # Imported here, so that `sample_app.embedded` starts its processes without the application.
    from flask import Flask

    from . import (
        cli,
        digest,  # noqa: F401  (registers the job)
        views,
    )
    from .config import settings
    from .extensions import cron, db

    app = Flask(__name__)
    app.config.from_mapping(settings(config or {}))
    db.init_app(app)
    cron.init_app(app)
    app.register_blueprint(views.blueprint)
    app.cli.add_command(cli.sample)
    return app
