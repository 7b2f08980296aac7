"""`flask sample`: the application's own tables, and something to fill them."""

from __future__ import annotations

import click
from flask.cli import AppGroup

from .extensions import db
from .seed import seed

sample = AppGroup("sample", help="Tables and users of the sample application.")


@sample.command("init-db")
def init_db() -> None:
    """Create the tables that are missing."""
    db.create_all()
    click.echo("The tables are there.")


@sample.command("seed")
@click.option("--users", type=click.IntRange(min=1), default=1000, show_default=True)
def add_users(users: int) -> None:
    """Add users and posts."""
    seed(db.session(), users)
    db.session.commit()
    click.echo(f"{users} subscribers are there.")
