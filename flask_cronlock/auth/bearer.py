"""``Authorization: Bearer <secret>``."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Sequence

from flask import Request

from ..exceptions import SecretMissing

logger = logging.getLogger("flask_cronlock")


class BearerSecret:
    """Lets a request in that bears one of the secrets; several are for rotation.

    The header is taken apart here, as bytes: whatever it holds, it can only be right or wrong.
    """

    def __init__(self, secrets: Sequence[bytes]) -> None:
        self._secrets = tuple(secrets)

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
