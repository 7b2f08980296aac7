"""The pages of the outbox and the inbox, and a health check."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from flask import Blueprint, Response, current_app, make_response, render_template, request
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, ProgrammingError

from . import inbox, outbox
from .config import digest_every
from .digest import ZONE
from .extensions import db
from .models import Mail, Outbox

PAGE = 25
SLOTS = 7
LARGEST_ID = 2**63 - 1
STILL = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

blueprint = Blueprint("sample", __name__)


@blueprint.get("/")
def outbox_page() -> str:
    """Show the newest digests, or those before `?before=ID`."""
    before = position()
    digests = outbox.newest(db.session(), before, PAGE)
    return render_template(
        "outbox.html",
        every=digest_every(),
        digests=digests,
        slots=outbox.per_slot(db.session(), SLOTS),
        older=older_than(digests),
        before=before,
    )


@blueprint.get("/inbox")
def inbox_page() -> str:
    """Show the newest mails, or those before `?before=ID`."""
    before = position()
    mails = inbox.newest(db.session(), before, PAGE)
    return render_template(
        "inbox.html",
        mails=mails,
        totals=inbox.totals(db.session()),
        older=older_than(mails),
        before=before,
    )


@blueprint.get(f"/inbox/<int(max={LARGEST_ID}):number>")
def mail_page(number: int) -> Response:
    """Show one mail. What it brings along runs and loads nothing."""
    mail = db.get_or_404(Mail, number)
    page = make_response(render_template("mail.html", mail=mail, letter=inbox.read(mail)))
    page.headers["Content-Security-Policy"] = STILL
    return page


def position() -> int | None:
    """Return the `?before=ID` of a page, if it is a number."""
    before = request.args.get("before", type=int)
    return before if before is None else max(0, min(before, LARGEST_ID))


def older_than(rows: Sequence[Outbox | Mail]) -> int | None:
    """Return the last row's id if there may be older ones."""
    return rows[-1].id if len(rows) == PAGE else None


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
