"""Several instances, each with several workers, get the same hits at once."""

from __future__ import annotations

from collections import Counter

import pytest

from ..support.databases import Database
from ..support.instances import at_once, gunicorn
from ..support.worlds import World


@pytest.mark.parametrize(
    ("route", "preload"), [("direct", ["--preload"]), ("pgbouncer", [])], indirect=["route"]
)
def test_twenty_hits_at_once_over_two_instances_run_a_slot_once(
    database: Database, world: World, route: str, preload: list[str]
) -> None:
    extra = {"JOB_SECONDS": "0.5", "CONNECT_AT_IMPORT": "1"}
    with (
        gunicorn(database, *preload, url=route, name="web.1", **extra) as one,
        gunicorn(database, *preload, url=route, name="web.2", **extra) as two,
    ):
        answers = at_once([lambda i=i: i.post("idle") for i in [one, two] * 10])
        late = one.post("idle")

    words = Counter(answer.body.get("reason", answer.body["outcome"]) for answer in answers)
    assert {answer.status for answer in answers} == {200}
    assert words["ran"] == 1
    assert sum(words.values()) == 20
    assert set(words) <= {"ran", "already running", "already ran"}
    assert late.body["reason"] == "already ran"
    assert world.marks == 2  # one beginning, one end
    assert len(world.notes) == 1
    assert database.advisory_locks() == 0
