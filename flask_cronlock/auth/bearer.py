"""``Authorization: Bearer <secret>``."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Sequence
from datetime import datetime

from flask import Request

from ..exceptions import SecretMissing
from .slotheader import slot_in

logger = logging.getLogger("flask_cronlock")


class BearerSecret:
    """Lets a request in that bears one of the secrets; several are for rotation.

    The header is taken apart here, as bytes: whatever it holds, it can only be right or wrong.

    :param slot_header: the header in which the bearer may name the slot; ``None``: in none.
    """

    def __init__(self, secrets: Sequence[bytes], slot_header: str | None = None) -> None:
        self._secrets, self._slot_header = tuple(secrets), slot_header

    def authenticate(self, request: Request) -> bool:
        """Return whether the bearer's secret is one of ours.

        :raises SecretMissing: when none is configured.
        """
        if not self._secrets:
            raise SecretMissing
        header: str = request.environ.get("HTTP_AUTHORIZATION", "")
        scheme, _, token = header.encode("latin-1", "replace").partition(b" ")
        if scheme.lower() != b"bearer":
            return False
        matches = [hmac.compare_digest(token, secret) for secret in self._secrets]
        if not any(matches):
            return False
        logger.debug("Secret number %d matched.", matches.index(True) + 1)
        return True

    def slot(self, request: Request) -> datetime | None:
        """Return the scheduled time that the bearer names.

        :raises SlotError: when its header holds anything but a time with an offset.
        """
        return slot_in(request, self._slot_header) if self._slot_header else None
