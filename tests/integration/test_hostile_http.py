"""Whatever is sent: the answer is JSON, tells nothing, and no job runs without the secret."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ..support.databases import Database
from ..support.fuzz import cases, nothing_left, number_of_cases, seed
from ..support.fuzz_bytes import SLOT_HEADER
from ..support.fuzz_requests import Case, ask, header_text, requests, spoilt
from ..support.worlds import World, world_on

runs: Counter[str] = Counter()
EARLY = timedelta(seconds=5)


@pytest.fixture(scope="module")
def world(module_database: Database) -> Iterator[World]:
    """A world with the jobs ``x``, without slots, and ``daily``; what runs is counted here."""
    with world_on(module_database, CRONLOCK_SLOT_HEADER=SLOT_HEADER) as made:
        made.cron.job("x")(lambda: runs.update(x=1))
        made.cron.job("daily", every="1d", max_lateness="36000d")(lambda: runs.update(daily=1))
        made.cron.job("hit")(made.mark)
        with nothing_left(made, lambda: made.post("hit")):
            yield made


def check(world: World, case: Case) -> None:
    """Ask, and check that the answer, and what ran, are what the case calls for."""
    before = runs.copy()

    said = ask(world.app, case)

    ran = runs - before
    if not case.ours:
        assert (said.status, ran) == (404, Counter())
        return
    body = said.body(case.method)
    assert said.status < 500
    assert ran == ({case.job: 1} if body.get("outcome") == "ran" else {})
    if case.method.upper() != "POST":
        assert (said.status, said.headers["Allow"]) == (405, "POST")
    elif not case.let_in:
        assert (said.status, body) == (401, {"error": "Unauthorized"})
    elif case.job == "x":
        assert (said.status, body["outcome"]) == (200, "ran")
    elif case.job == "daily":
        assert said.status in (200, 400)
        if case.slot is not None and said.status == 200:
            meant = datetime.fromisoformat(case.slot.upper())
            assert abs(datetime.fromisoformat(body["slot"]) - meant) <= EARLY
    else:
        assert (said.status, body) == (404, {"error": "Unknown job"})


@cases(250)
@given(case=requests)
@example(case=Case("/api//cron/x\ny"))
@example(case=Case("/api//cron/\n"))
@example(case=Case(headers={"HTTP_CONNECTION": "Upgrade", "HTTP_UPGRADE": "websocket"}))
@example(case=Case("/api/cron/daily", slot="0001-01-01T00:00:00+23:59"))
def test_any_request_is_answered_in_json_and_runs_its_job_or_none(world: World, case: Case) -> None:
    check(world, case)


def test_thousands_of_requests_with_something_wrong_run_nothing_else(world: World) -> None:
    random = Random(seed())
    for _ in range(number_of_cases(2_000)):
        check(world, spoilt(random))


@cases(60)
@given(host=st.text(st.characters(max_codepoint=255), max_size=80))
@example(host="a" * 64)
@example(host="..")
def test_a_host_that_is_none_is_refused_or_makes_no_difference(world: World, host: str) -> None:
    before = runs.copy()

    said = ask(world.app, Case("/api/cron/x", headers={"HTTP_HOST": host}))

    # Flask refuses a host that no host can have before it looks at the path.
    assert said.status in (200, 400)
    assert (runs - before)["x"] == (said.status == 200)
    assert "Location" not in said.headers


@cases(60)
@given(path=st.sampled_from(["x", "no-such-job"]), secret=header_text)
def test_who_has_no_secret_learns_nothing(world: World, path: str, secret: str) -> None:
    case = Case(f"/api/cron/{path}", "POST", f"Bearer {secret}")

    known, unknown = ask(world.app, case), ask(world.app, replace(case, path="/api/cron/other"))

    assert known == unknown
    assert known.body() == {"error": "Unauthorized"}
