"""The machine blueprint: ``POST {prefix}/<job>``, JSON in every case.

All methods and both slash forms are answered here, so that no request is redirected, none gets an
HTML page, and a HEAD or OPTIONS never runs a job.
"""

from __future__ import annotations

import json
import logging
from http import HTTPStatus
from typing import Any

from flask import Blueprint, Flask, Response, current_app, request
from werkzeug.routing import Rule

from .answers import Answer, of_outcome, of_refusal, of_unavailable
from .auth import Authenticator, BearerSecret
from .config import Config
from .exceptions import CronLockError, RefusedRun, Unavailable
from .routing import SlashedConverter
from .session import end_clean_transaction
from .state import this_state
from .texts import loggable

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
        return _response(_answer(authenticator, job))

    app.register_blueprint(blueprint)
    app.view_functions[ENDPOINT] = run_job
    app.url_map.converters.setdefault("cronlock_slashed", SlashedConverter)
    for path in (f"{config.url_prefix}/<job>", f"/<cronlock_slashed({config.url_prefix!r}):job>"):
        app.url_map.add(Rule(path, endpoint=ENDPOINT))


def _protections(app: Flask) -> list[Any]:
    """Return Flask-WTF's and Flask-Limiter's objects, where the app has them."""
    csrf = app.extensions.get("csrf")
    limiters = app.extensions.get("limiter", ())
    found = [csrf, *(limiters if isinstance(limiters, (set, list, tuple)) else [limiters])]
    return [extension for extension in found if hasattr(extension, "exempt")]


def _answer(authenticator: Authenticator, name: str) -> Answer:
    """Run the job, and turn what is raised into an answer that says no more than it must."""
    about: dict[str, str] = {}
    try:
        if (turned_away := _turn_away(authenticator)) is not None:
            return turned_away
        about["job"] = this_state().jobs.get(name).name
        return _run(name)
    except Unavailable as error:
        _log_error(str(error), "run_unavailable", error.__cause__)
        return of_unavailable(error, about)
    except RefusedRun as error:
        logger.warning("%s", error, extra={"action": "run_refused"})
        return of_refusal(error, about)
    except CronLockError as error:
        _log_error(str(error), "run_refused", error.__cause__)
        return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, {**about, "error": "Misconfigured"})
    except Exception as error:
        _log_error("A run could not be begun.", "run_error", error)
        return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, {**about, "error": "Internal error"})


def _turn_away(authenticator: Authenticator) -> Answer | None:
    if request.method != "POST":
        return Answer(HTTPStatus.METHOD_NOT_ALLOWED, {"error": "Use POST"}, {"Allow": "POST"})
    if not authenticator.authenticate(request):
        return Answer(
            HTTPStatus.UNAUTHORIZED, {"error": "Unauthorized"}, {"WWW-Authenticate": "Bearer"}
        )
    return None


def _run(name: str) -> Answer:
    state = this_state()
    end_clean_transaction(state.db)
    config = state.config
    return of_outcome(state.run("http", name), config.in_flight_status, config.secrets)


def _log_error(words: str, action: str, cause: BaseException | None) -> None:
    shown, trace = (None, "") if cause is None else loggable(cause, this_state().config.secrets)
    logger.error("%s%s", words, trace, exc_info=shown, extra={"action": action})


def _response(answer: Answer) -> Response:
    body = json.dumps(answer.body) + "\n"
    response: Response = current_app.response_class(
        body, status=answer.status, mimetype="application/json"
    )
    response.headers["Cache-Control"] = "no-store"
    response.headers.update(answer.headers)
    return response
