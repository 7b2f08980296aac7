"""The page of the outbox, and a health check."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from flask import Blueprint, Response, current_app, render_template, request
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, ProgrammingError

from . import outbox
from .config import digest_every
from .digest import ZONE
from .extensions import db

PAGE = 25
SLOTS = 7
LARGEST_ID = 2**63 - 1

blueprint = Blueprint("sample", __name__)


@blueprint.get("/")
def index() -> str:
    """Show the newest digests, or those before `?before=ID`."""
    before = request.args.get("before", type=int)
    if before is not None:
        before = max(0, min(before, LARGEST_ID))
    digests = outbox.newest(db.session(), before, PAGE)
    older = digests[-1].id if len(digests) == PAGE else None
    slots = outbox.per_slot(db.session(), SLOTS)
    return render_template(
        "outbox.html",
        every=digest_every(),
        digests=digests,
        slots=slots,
        older=older,
        before=before,
    )


@blueprint.get("/healthz")
def healthz() -> Response:
    """Answer 200 if the database answers, else 503."""
    try:
        db.session.execute(text("SELECT 1"))
    except DBAPIError:
        current_app.logger.exception("The database does not answer")
        return Response("database unreachable\n", 503, mimetype="text/plain")
    return Response("ok\n", mimetype="text/plain")


@blueprint.errorhandler(ProgrammingError)
def tables_missing(error: ProgrammingError) -> Response:
    """Name the command that creates the tables, if that is what is wrong."""
    if getattr(error.orig, "sqlstate", None) != "42P01":
        raise error
    cure = "The tables are missing. Create them: flask --app wsgi sample init-db\n"
    return Response(cure, 503, mimetype="text/plain")


@blueprint.app_template_filter("local")
def local(instant: datetime) -> str:
    """Format an instant in the time zone of the digest."""
    return instant.astimezone(ZoneInfo(ZONE)).strftime("%a %d %b %Y, %H:%M:%S").removesuffix(":00")
