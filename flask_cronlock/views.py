"""The machine blueprint: ``POST {prefix}/<job>`` and ``GET {prefix}/-/runs/<id>``, JSON in every
case.

All methods and both slash forms are answered here, so that no request is redirected, none gets an
HTML page, and a HEAD or OPTIONS never runs a job.
"""

from __future__ import annotations

import json
import logging
import re
from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote
from uuid import UUID

from flask import Blueprint, Flask, Response, current_app, request
from werkzeug.routing import Rule

from .answers import Answer, of_error, of_outcome, of_queued, of_request
from .auth import Authenticator, BearerSecret
from .config import Config
from .exceptions import RefusedRun, Unavailable
from .jobs import Job
from .queue.handover import find_request, hand_over
from .queue.requests import Queued
from .routing import SlashedConverter
from .runner import run_job
from .session import end_clean_transaction
from .state import AppState, this_app, this_state
from .telling import log_words

logger = logging.getLogger("flask_cronlock")

ENDPOINT = "cronlock.run"
REQUEST = re.compile(r"-/+runs/+([^/]+)")
"""What stands in the place of a job's name, which begins with no dash."""
UNAUTHORIZED = Answer(
    HTTPStatus.UNAUTHORIZED, {"error": "Unauthorized"}, {"WWW-Authenticate": "Bearer"}
)
UNKNOWN_RUN = Answer(HTTPStatus.NOT_FOUND, {"error": "Unknown run"})


def register_views(app: Flask, config: Config) -> None:
    """Add the endpoint to *app*, exempt from its CSRF protection and its rate limits."""
    authenticator = BearerSecret(config.secrets, config.slot_header)
    blueprint = Blueprint("cronlock", __name__)

    @blueprint.url_value_preprocessor
    def exempt(*_: object) -> None:
        # These run before every before_request function of the app, whatever the order in which
        # the extensions were set up.
        for extension in _protections(app):
            extension.exempt(blueprint)

    def answer(job: str) -> Response:
        return _response(_answer(authenticator, job))

    app.register_blueprint(blueprint)
    app.view_functions[ENDPOINT] = answer
    app.url_map.converters.setdefault("cronlock_slashed", SlashedConverter)
    slashed = f"/<cronlock_slashed({config.url_prefix!r}):job>"
    for path in (f"{config.url_prefix}/<job>", slashed):
        app.url_map.add(Rule(path, endpoint=ENDPOINT))
    # One that asks for an upgrade is matched by no other rule.
    app.url_map.add(Rule(slashed, endpoint=ENDPOINT, websocket=True))


def _protections(app: Flask) -> list[Any]:
    """Return Flask-WTF's and Flask-Limiter's objects, where the app has them."""
    csrf = app.extensions.get("csrf")
    limiters = app.extensions.get("limiter", ())
    found = [csrf, *(limiters if isinstance(limiters, (set, list, tuple)) else [limiters])]
    return [extension for extension in found if hasattr(extension, "exempt")]


def _answer(authenticator: Authenticator, name: str) -> Answer:
    """Run the job, and turn what is raised into an answer that says no more than it must."""
    about: dict[str, str] = {}
    state = this_state()
    asked = REQUEST.fullmatch(name)
    method = "GET" if asked else "POST"
    try:
        if request.method != method:
            error = {"error": f"Use {method}"}
            return Answer(HTTPStatus.METHOD_NOT_ALLOWED, error, {"Allow": method})
        if not authenticator.authenticate(request):
            return UNAUTHORIZED
        if asked:
            return _look_up(state, asked[1])
        job = state.jobs.get(name)
        about["job"] = job.name
        # Schedulers send the header to every job; one without a schedule has no slot to name.
        scheduled = job.schedule(state.config.timezone) is not None
        named = authenticator.slot(request) if scheduled else None
        return _run(state, job, named)
    except Exception as error:
        _log(error, state.config)
        return of_error(error, about)


def _run(state: AppState, job: Job, named: datetime | None) -> Answer:
    """Run *job*, or have a worker run it."""
    end_clean_transaction(state.db)
    run = hand_over if job.on_worker else run_job
    outcome = run(this_app(), state, job, "http", named)
    if isinstance(outcome, Queued):
        # Never with the request's host, which anybody may send.
        path = f"{request.root_path}{state.config.url_prefix}/-/runs/{outcome.request}"
        return of_queued(outcome, "/" + quote(path.lstrip("/")))
    return of_outcome(outcome, state.config.in_flight_status, state.config.secrets)


def _look_up(state: AppState, text: str) -> Answer:
    """Say what became of a run that a worker was asked for."""
    try:
        number = UUID(text)
    except ValueError:
        return UNKNOWN_RUN
    end_clean_transaction(state.db)
    found = find_request(state, number)
    return of_request(*found) if found else UNKNOWN_RUN


def _log(error: Exception, config: Config) -> None:
    """Log why no run was begun; the caller is told no more than the kind of it."""
    if isinstance(error, RefusedRun):
        logger.warning("%s", error, extra={"action": "run_refused"})
        return
    words, shown = log_words(error, config.secrets)
    action = "run_unavailable" if isinstance(error, Unavailable) else "run_error"
    logger.error("A run could not be begun: %s", words, exc_info=shown, extra={"action": action})


def _response(answer: Answer) -> Response:
    body = json.dumps(answer.body) + "\n"
    response: Response = current_app.response_class(
        body, status=answer.status, mimetype="application/json"
    )
    response.headers["Cache-Control"] = "no-store"
    response.headers.update(answer.headers)
    return response
