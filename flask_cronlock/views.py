"""The machine blueprint: ``POST {prefix}/<job>``, JSON in every case.

All methods and both slash forms are answered here, so that no request is redirected, none gets an
HTML page, and a HEAD or OPTIONS never runs a job.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from flask import Blueprint, Flask, Response, current_app, json, request
from werkzeug.routing import Rule

from .answers import Answer, of_outcome, of_refusal, of_unavailable
from .auth import BearerSecret
from .config import Config
from .exceptions import CronLockError, RefusedRun, Unavailable
from .routing import SlashedConverter
from .session import end_clean_transaction
from .state import this_state

logger = logging.getLogger("flask_cronlock")

ENDPOINT = "cronlock.run"


def register_views(app: Flask, config: Config) -> None:
    """Add the endpoint to *app*, exempt from its CSRF protection and its rate limits."""
    authenticator = BearerSecret(config.secrets)
    blueprint = Blueprint("cronlock", __name__)

    @blueprint.url_value_preprocessor
    def exempt(*_: object) -> None:
        # These run before every before_request function of the app, whatever the order in which
        # the extensions were set up.
        for extension in _protections(app):
            extension.exempt(blueprint)

    def run_job(job: str) -> Response:
        return _response(_answer(lambda: _run(authenticator, job)))

    app.register_blueprint(blueprint)
    app.view_functions[ENDPOINT] = run_job
    app.url_map.converters.setdefault("cronlock_slashed", SlashedConverter)
    for path in (f"{config.url_prefix}/<job>", f"/<cronlock_slashed({config.url_prefix!r}):job>"):
        app.url_map.add(Rule(path, endpoint=ENDPOINT, strict_slashes=False, merge_slashes=False))


def _protections(app: Flask) -> list[Any]:
    """Return Flask-WTF's and Flask-Limiter's objects, where the app has them."""
    csrf = app.extensions.get("csrf")
    limiters = app.extensions.get("limiter", ())
    found = [csrf, *(limiters if isinstance(limiters, (set, list, tuple)) else [limiters])]
    return [extension for extension in found if hasattr(extension, "exempt")]


def _run(authenticator: BearerSecret, job: str) -> Answer:
    if request.method != "POST":
        return Answer(HTTPStatus.METHOD_NOT_ALLOWED, {"error": "Use POST"}, {"Allow": "POST"})
    if not authenticator.authenticate(request):
        return Answer(
            HTTPStatus.UNAUTHORIZED, {"error": "Unauthorized"}, {"WWW-Authenticate": "Bearer"}
        )
    state = this_state()
    state.jobs.get(job)
    end_clean_transaction(state.db)
    return of_outcome(state.run("http", job), state.config.in_flight_status)


def _answer(run: Callable[[], Answer]) -> Answer:
    """Turn what is raised into an answer that says no more than it must."""
    try:
        return run()
    except Unavailable as error:
        logger.error("%s", error, exc_info=error.__cause__, extra={"action": "run_unavailable"})
        return of_unavailable(error)
    except RefusedRun as error:
        logger.warning("%s", error, extra={"action": "run_refused"})
        return of_refusal(error)
    except CronLockError as error:
        logger.error("%s", error, extra={"action": "run_refused"})
        return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": "Misconfigured"})
    except Exception:
        logger.exception("A run could not be begun.", extra={"action": "run_error"})
        return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": "Internal error"})


def _response(answer: Answer) -> Response:
    body = json.dumps(answer.body) + "\n"
    response: Response = current_app.response_class(
        body, status=answer.status, mimetype="application/json"
    )
    response.headers["Cache-Control"] = "no-store"
    response.headers.update(answer.headers)
    return response
