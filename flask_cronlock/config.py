"""Configuration: the keys, their defaults, and what is refused."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from .durations import parse_duration
from .exceptions import ConfigError, RegistrationError
from .instance import find_instance
from .queue.registration import NO_NAMESPACE
from .registration import checked_timeout
from .zones import load_zone

T = TypeVar("T")

logger = logging.getLogger("flask_cronlock")

PREFIX = "CRONLOCK_"
DEFAULTS: dict[str, Any] = {
    "SECRET": None,
    "NAMESPACE": None,
    "URL_PREFIX": "/api/cron",
    "TIMEZONE": "UTC",
    "TIMEOUT": "60s",
    "EARLY": "5s",
    "IN_FLIGHT_STATUS": 200,
    "INSTANCE": None,
    "ENABLED": True,
    "SLOT_HEADER": None,
    "WORKER_URL": None,
    "QUEUE_HISTORY": "30d",
}
HEADER_NAME = re.compile(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*")
TAKEN_HEADERS = re.compile(
    r"(accept|access-control|content|if|proxy|sec|x-forwarded)(-.*)?|authorization|cache-control|"
    r"connection|cookie|date|dnt|expect|forwarded|from|host|http2-settings|keep-alive|max-forwards|"
    r"origin|pragma|prefer|priority|range|referer|te|trailer|traceparent|tracestate|"
    r"transfer-encoding|upgrade|upgrade-insecure-requests|user-agent|via|warning|x-real-ip|"
    r"x-request-id"
)
"""What a request's headers carry already, and so none of them a slot."""
POSTGRES_URL = re.compile(r"postgres(ql)?(\+psycopg)?://\S+$")
SHORTEST_HISTORY = timedelta(days=7)
"""An item waits for four days at most: a hundred attempts, an hour apart."""
SHORTEST_SECRET = 16
PLACEHOLDERS = {"none", "null", "undefined", "changeme"}
NEW_SECRET = "python3 -c 'import secrets; print(secrets.token_urlsafe(32))'"
"""What makes a good secret; `flask cron secret` does too, but not for an app that cannot start."""


@dataclass(frozen=True, slots=True)
class Config:
    """One app's settings, checked."""

    secrets: tuple[bytes, ...] = field(repr=False)
    namespace: str
    url_prefix: str
    timezone: str
    timeout: timedelta
    early: timedelta
    in_flight_status: int
    instance: str
    enabled: bool
    slot_header: str | None
    worker_url: str | None = field(repr=False)
    queue_history: timedelta

    @staticmethod
    def checked_names(settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return a constructor's settings, or raise :exc:`TypeError` for one that is unknown."""
        for name in settings:
            if name.upper() not in DEFAULTS or not name.islower():
                known = ", ".join(key.lower() for key in DEFAULTS)
                raise TypeError(f"CronLock() has no setting {name!r}; the settings are {known}")
        return dict(settings)

    @classmethod
    def load(
        cls,
        app_config: Mapping[str, Any],
        arguments: Mapping[str, Any],
        environ: Mapping[str, str] = os.environ,
    ) -> Config:
        """Return the settings: a constructor's argument, else its ``CRONLOCK_`` key, else the
        default.

        :raises ConfigError: naming the key that cannot be used, and what to set instead.
        """
        _warn_of_unknown_keys(app_config)
        given = {
            key: app_config.get(PREFIX + key, default)
            if arguments.get(key.lower()) is None
            else arguments[key.lower()]
            for key, default in DEFAULTS.items()
        }
        named = given["SECRET"] is not None
        secret = given["SECRET"] if named else environ.get("CRON_SECRET")
        return cls(
            secrets=_secrets(secret, "CRONLOCK_SECRET" if named else "CRON_SECRET"),
            namespace=_namespace(given["NAMESPACE"]),
            url_prefix=_url_prefix(given["URL_PREFIX"]),
            timezone=_converted("TIMEZONE", load_zone, given["TIMEZONE"]).key,
            timeout=_converted("TIMEOUT", checked_timeout, given["TIMEOUT"]),
            early=_converted("EARLY", _early, given["EARLY"]),
            in_flight_status=_status(given["IN_FLIGHT_STATUS"]),
            instance=find_instance(given["INSTANCE"], environ),
            enabled=_enabled(given["ENABLED"]),
            slot_header=_slot_header(given["SLOT_HEADER"]),
            worker_url=_worker_url(given["WORKER_URL"] or environ.get("CRONLOCK_WORKER_URL")),
            queue_history=_converted("QUEUE_HISTORY", _history, given["QUEUE_HISTORY"]),
        )


def _warn_of_unknown_keys(app_config: Mapping[str, Any]) -> None:
    for key in app_config:
        if key.startswith(PREFIX) and key.removeprefix(PREFIX) not in DEFAULTS:
            logger.warning(
                "%s is not a configuration key of Flask-CronLock and is ignored; the keys are %s.",
                key,
                ", ".join(PREFIX + known for known in DEFAULTS),
                extra={"action": "unknown_config_key", "key": key},
            )


def _secrets(given: object, key: str) -> tuple[bytes, ...]:
    """Return the usable secrets; none at all is allowed here, and lets no request in."""
    if given is None:
        return ()
    items = [given] if isinstance(given, (str, bytes)) else given
    if not isinstance(items, Sequence) or not items:
        raise ConfigError(f"{key} must be a string, or a list of strings for rotation")
    return tuple(_secret(item, key) for item in items)


def _secret(item: object, key: str) -> bytes:
    if not isinstance(item, (str, bytes)):
        raise ConfigError(f"{key} has an item that is no string; remove it")
    # os.environ keeps bytes that are no UTF-8 as surrogates.
    raw = item.encode("utf-8", "surrogateescape") if isinstance(item, str) else item
    stripped = raw.rstrip(b"\r\n")
    if stripped != raw:
        logger.warning(
            "A newline at the end of %s was stripped; store the secret without it.",
            key,
            extra={"action": "secret_stripped"},
        )
    if stripped.strip().lower().decode(errors="replace") in PLACEHOLDERS | {""}:
        raise ConfigError(f"{key} is blank or a placeholder; set it to the output of {NEW_SECRET}")
    if len(stripped) < SHORTEST_SECRET or stripped != stripped.strip():
        raise ConfigError(
            f"{key} needs at least {SHORTEST_SECRET} bytes and no blanks around them; "
            f"set it to the output of {NEW_SECRET}"
        )
    if re.search(rb"[\x00-\x1f\x7f]", stripped):
        raise ConfigError(
            f"{key} holds a control character, which no header can carry; "
            f"set it to the output of {NEW_SECRET}"
        )
    return stripped


def _namespace(given: object) -> str:
    if given is None:
        return ""
    if not isinstance(given, str) or not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,62}", given):
        raise ConfigError(
            'CRONLOCK_NAMESPACE must be lower-case letters, digits, "-" and "_", at most 63'
        )
    if given == NO_NAMESPACE:
        raise ConfigError(f"CRONLOCK_NAMESPACE: {given} names the queues of apps without one")
    return given


def _url_prefix(given: object) -> str:
    if not isinstance(given, str) or not re.fullmatch(r"(/[\w.~-]+)+/?", given):
        raise ConfigError('CRONLOCK_URL_PREFIX must be a path such as "/api/cron"')
    return given.rstrip("/")


def _converted(key: str, convert: Callable[[Any], T], given: Any) -> T:
    try:
        return convert(given)
    except RegistrationError as error:
        raise ConfigError(f"{PREFIX}{key}: {error}") from error


def _early(given: Any) -> timedelta:
    return timedelta() if given in (0, "0s", timedelta()) else parse_duration(given, "duration")


def _status(given: object) -> int:
    allowed = isinstance(given, int) and (200 <= given <= 299 or 400 <= given <= 599)
    if not isinstance(given, int) or not allowed or given in (204, 205):
        raise ConfigError(
            "CRONLOCK_IN_FLIGHT_STATUS must be an HTTP status such as 200 or 409: one with a body, "
            "and no redirect"
        )
    return given


def _enabled(given: object) -> bool:
    if not isinstance(given, bool):
        raise ConfigError(f"CRONLOCK_ENABLED must be True or False, not {given!r}")
    return given


def _slot_header(given: object) -> str | None:
    if given is None:
        return None
    # Servers drop a name with "_", which to an app would be the same as one with "-".
    if not isinstance(given, str) or not HEADER_NAME.fullmatch(given):
        raise ConfigError(
            'CRONLOCK_SLOT_HEADER must be a header\'s name, of letters, digits and "-", such as '
            '"X-CloudScheduler-ScheduleTime"'
        )
    if TAKEN_HEADERS.fullmatch(given.lower()):
        raise ConfigError(f"CRONLOCK_SLOT_HEADER: {given} carries something else; name another")
    return given


def _worker_url(given: object) -> str | None:
    if not given:
        return None
    if not isinstance(given, str) or not POSTGRES_URL.match(given):
        # Not repeated: it may hold a password.
        raise ConfigError(
            "CRONLOCK_WORKER_URL must be the database's own address, not the pooler's, such as "
            "postgresql://user:password@host/database"
        )
    return given


def _history(given: Any) -> timedelta:
    history = parse_duration(given, "duration")
    if history < SHORTEST_HISTORY:
        raise ConfigError(
            "CRONLOCK_QUEUE_HISTORY must be at least 7d: what waits to be tried again must find "
            "the records of what is done"
        )
    return history
