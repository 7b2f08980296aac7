"""Jobs for workers, with real instances and real workers: one run, whatever is hit or killed."""

from __future__ import annotations

import http.client
import json
import signal
from functools import partial
from typing import Any

import pytest

from ..support.clock_processes import TRACEBACK
from ..support.databases import Database
from ..support.instances import Instance, at_once, gunicorn
from ..support.processes import wait_until
from ..support.queue_workers import Workshop
from ..support.worlds import SECRET

APP = "tests.support.worker_jobs_app"
HITS = 60


@pytest.fixture
def workshop(database: Database) -> Workshop:
    made = Workshop(database, APP)
    made.set_up()
    return made


def ask(instance: Instance, request: str) -> dict[str, Any]:
    """Return what an instance tells of a run that a worker was asked for."""
    connection = http.client.HTTPConnection("127.0.0.1", instance.port, timeout=30)
    path, headers = f"/api/cron/-/runs/{request}", {"Authorization": f"Bearer {SECRET}"}
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        assert response.status == 200
        body = json.loads(response.read())
    finally:
        connection.close()
    assert isinstance(body, dict)
    return body


def requests_of(answers: list[Any]) -> set[str]:
    assert {(answer.status, answer.body["outcome"]) for answer in answers} == {(202, "queued")}
    return {answer.body["request"] for answer in answers}


def test_sixty_hits_at_once_are_one_row_and_one_run(
    database: Database, route: str, workshop: Workshop
) -> None:
    with gunicorn(database, url=route, target=f"{APP}:app") as web:
        (request,) = requests_of(at_once([partial(web.post, "nightly")] * HITS))
        queued = ask(web, request)
        assert list(workshop.rows().values()) == ["todo"]
        with workshop.worker(url=route) as worker:
            wait_until(lambda: ask(web, request)["state"] == "ended")
            ended, late = ask(web, request), web.post("nightly")
            workshop.wait_until_empty()
            assert worker.end() == 0
            said = worker.said()
        assert TRACEBACK not in web.log.read_text() + said

    assert (queued["state"], queued["runs"]) == ("queued", 0)
    assert (ended["outcome"], ended["processed"], ended["runs"]) == ("ran", "done", 1)
    assert (late.status, late.body["reason"]) == (200, "already ran")
    assert workshop.begun() == workshop.noted() == ["nightly"]
    assert "Job nightly ran.\n" in said


def test_what_a_killed_worker_was_running_is_run_by_another(
    database: Database, workshop: Workshop
) -> None:
    with (
        gunicorn(database, target=f"{APP}:app") as web,
        workshop.worker(JOB_SECONDS="3600") as doomed,
    ):
        (request,) = requests_of([web.post("nightly")])
        workshop.wait_for_begun("nightly")
        running = ask(web, request)
        assert requests_of([web.post("nightly")]) == {request}
        with workshop.worker() as other:
            doomed.end(signal.SIGKILL)
            wait_until(lambda: ask(web, request)["state"] == "ended", 60)
            ended = ask(web, request)
            assert other.end() == 0
            said = other.said()

    assert (running["state"], running["runs"]) == ("running", 1)
    assert (ended["outcome"], ended["runs"]) == ("ran", 2)
    assert workshop.begun() == ["nightly"] * 2
    assert workshop.noted() == ["nightly"]
    assert "Job nightly ran.\n" in said
