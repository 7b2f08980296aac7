"""The scheduled time that a request names in a header."""

from __future__ import annotations

import re
from datetime import datetime

from flask import Request

from ..exceptions import SlotError

RFC_3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3])(:[0-9]{2}){2}(\.[0-9]{1,9})?"
    r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)


def slot_in(request: Request, header: str) -> datetime | None:
    """Return the time in *header*, ``None`` where the request has no such header.

    The caller answers for it: only the authenticator that let the request in, and only for the
    header that it owns.

    :raises SlotError: for anything but one RFC 3339 time with an offset.
    """
    value = request.headers.get(header)
    if value is None:
        return None
    text = value.upper()
    try:
        if RFC_3339.fullmatch(text):
            return datetime.fromisoformat(text)
    except ValueError:
        pass
    # The value is not repeated: it goes to the log, and might be a secret in the wrong header.
    raise SlotError(f"{header} must be one time such as 2026-10-25T07:00:00+01:00, or end in Z")
