"""Only POST runs a job."""

from __future__ import annotations

import pytest

from ..support.endpoint import body_of
from ..support.worlds import SECRET, World

OTHERS = ["GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "PROPFIND", "X"]
GOOD = {"Authorization": f"Bearer {SECRET}"}


@pytest.mark.parametrize("path", ["/api/cron/x", "/api/cron/x/", "/api/cron/no-such-job"])
@pytest.mark.parametrize("headers", [GOOD, {}], ids=["secret", "no secret"])
@pytest.mark.parametrize("method", OTHERS)
def test_any_other_method_is_refused_and_runs_nothing(
    served: World, method: str, headers: dict[str, str], path: str
) -> None:
    before = served.marks

    response = served.app.test_client().open(path, method=method, headers=headers)

    assert response.status_code == 405
    assert response.headers["Allow"] == "POST"
    if method == "HEAD":
        assert response.data == b""
        assert response.headers["Cache-Control"] == "no-store"
    else:
        assert body_of(response) == {"error": "Use POST"}
    assert served.marks == before


def test_a_header_that_asks_for_another_method_changes_nothing(served: World) -> None:
    before = served.marks

    response = served.app.test_client().get(
        "/api/cron/x", headers={**GOOD, "X-HTTP-Method-Override": "POST"}
    )

    assert response.status_code == 405
    assert served.marks == before
