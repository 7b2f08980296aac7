"""Signals about runs; the sender is the app.

Each carries ``job`` (its name). A subscriber's error is logged and changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from blinker import NamedSignal, Namespace
from flask import Flask

from .texts import loggable

logger = logging.getLogger("flask_cronlock")
_signals = Namespace()

job_started = _signals.signal("job-started")
"""Sent before the job's function is called, inside its transaction; carries ``run``."""

job_succeeded = _signals.signal("job-succeeded")
"""Sent after the commit; carries ``outcome``."""

job_skipped = _signals.signal("job-skipped")
"""Sent when a run was skipped; carries ``outcome``."""

job_failed = _signals.signal("job-failed")
"""Sent after the rollback, when the attempt has been recorded; carries ``outcome``."""


def send(signal: NamedSignal, app: Flask, secrets: Iterable[bytes], **about: Any) -> None:
    """Call every subscriber of *signal* in turn; one that raises stops no other."""
    for receiver in signal.receivers_for(app):
        try:
            receiver(app, **about)
        except Exception as error:
            shown, trace = loggable(error, secrets)
            logger.error(
                "A subscriber of %s raised; the run goes on.%s",
                signal.name,
                trace,
                exc_info=shown,
                extra={"action": "subscriber_failed", "signal": signal.name},
            )
