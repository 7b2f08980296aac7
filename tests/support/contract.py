"""What every answer of the endpoint keeps to, whatever it says."""

from __future__ import annotations

import json
from typing import Any

LONGEST_BODY = 1024


def body_of(response: Any) -> dict[str, Any]:
    """Return the JSON body of *response*, once all that holds for every answer was checked."""
    assert not 300 <= response.status_code < 400
    assert "Location" not in response.headers
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Cache-Control"] == "no-store"
    assert len(response.data) < LONGEST_BODY
    text = response.get_data(as_text=True)
    for telling in ("Traceback", "SELECT", "INSERT", "psycopg", "sqlalchemy", "<html"):
        assert telling not in text
    body = json.loads(text)
    assert isinstance(body, dict)
    assert ("error" in body) == (response.status_code >= 400 and "skipped" not in body)
    return body
