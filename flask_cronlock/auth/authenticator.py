"""What the endpoint asks of a way to authenticate."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from flask import Request


class Authenticator(Protocol):
    """Decides whether a request may run jobs; it fails closed."""

    def authenticate(self, request: Request) -> bool:
        """Return whether *request* is let in.

        :raises Unavailable: when that cannot be decided now.
        """
        ...

    def slot(self, request: Request) -> datetime | None:
        """Return the scheduled time that *request*, which was let in, names; ``None`` without one.

        It is read from the one header that this authenticator owns, and from nowhere else.

        :raises SlotError: when that header holds anything but a time with an offset.
        """
        ...
