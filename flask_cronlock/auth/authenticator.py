"""What the endpoint asks of a way to authenticate."""

from __future__ import annotations

from typing import Protocol

from flask import Request


class Authenticator(Protocol):
    """Decides whether a request may run jobs; it fails closed."""

    def authenticate(self, request: Request) -> bool:
        """Return whether *request* is let in.

        :raises Unavailable: when that cannot be decided now.
        """
        ...
