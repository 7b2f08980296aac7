"""Who may call the endpoint."""

from __future__ import annotations

from .authenticator import Authenticator
from .bearer import BearerSecret

__all__ = ["Authenticator", "BearerSecret"]
