"""A holder that escaped every limit of the server is ended by the next one who wants its lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
from psycopg import sql
from sqlalchemy import make_url

from flask_cronlock import Outcome, Ran, Reason, Skipped
from flask_cronlock.exceptions import JobTimeout
from flask_cronlock.instance import find_instance, with_pid

from ..support.databases import Database
from ..support.holders import escaped, free, holding
from ..support.processes import wait_until
from ..support.sites import BRISK, SLACK, Site
from ..support.worlds import World, bare_world

TIMEOUT = 4
"""Long enough to fill every buffer between a frozen process and its backend, on a busy machine."""
HOLDER = """
SELECT state, wait_event FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'cronlock%'
"""
AGE = """
SELECT extract(epoch FROM clock_timestamp() - xact_start) FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'cronlock%'
"""


def wait_until_overdue(database: Database, timeout: float) -> None:
    """Wait until the holder is more than a second past the end of its *timeout*."""
    wait_until(lambda: database.value(AGE) > timeout + 1.2, timeout + 1.2 + SLACK)


def about_overdue(log: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Return action and holder of each record about an overdue holder."""
    return [
        (record.action, record.holder)
        for record in log.records
        if getattr(record, "action", "").startswith("overdue_holder")
    ]


@pytest.mark.parametrize(
    ("site", "job", "waits_for"),
    [
        ("direct", "big-result", "ClientWrite"),
        ("pgbouncer", "big-result", "ClientWrite"),
        ("direct", "copy-in", "ClientRead"),
    ],
    indirect=["site"],
)
def test_a_holder_frozen_in_mid_message_is_ended_by_a_contender_once_overdue(
    site: Site,
    site_world: World,
    next_hit: Callable[[str], str],
    job: str,
    waits_for: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with holding(site, job, TIMEOUT, seconds=TIMEOUT + 1) as holder:
        holder.freeze()
        assert next_hit(job) == "already running"
        wait_until_overdue(site.database, TIMEOUT)
        assert site.database.query(HOLDER) == [("active", waits_for)]

        assert next_hit(job) == "already running"
        assert about_overdue(caplog) == [("overdue_holder_ended", holder.name)]
        wait_until(lambda: free(site.database), SLACK)
        assert next_hit(job) == "ran"
        answer = holder.wake()

    assert answer["error"].startswith("JobTimeout")
    assert site_world.notes == [f"next {job}"]
    assert [name for name, _ in site_world.attempts()] == [job]


def test_a_holder_within_its_own_time_is_not_ended_by_an_impatient_contender(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    @world.cron.job("report", timeout=BRISK)
    def report() -> None: ...

    with escaped(world, "report", timeout=60) as holder:
        wait_until_overdue(world.database, BRISK)
        assert is_already_running(world.run("report"))

    assert isinstance(holder.result(10), Ran)
    assert about_overdue(caplog) == []


@pytest.mark.parametrize("wait", [None, 10], ids=["try", "wait"])
def test_a_holder_past_its_own_time_is_ended_by_a_patient_with_lock(
    world: World, wait: float | None, caplog: pytest.LogCaptureFixture
) -> None:
    def contend() -> Outcome:
        with world.app.app_context():
            return world.cron.with_lock("report", lambda _: None, timeout=60, wait=wait)

    with escaped(world, "report", timeout=BRISK) as holder:
        wait_until_overdue(world.database, BRISK)
        outcome = contend()

    with pytest.raises(JobTimeout):
        holder.result(10)
    here = with_pid(find_instance())
    assert about_overdue(caplog) == [("overdue_holder_ended", here)]
    if wait:
        assert isinstance(outcome, Ran)
    else:
        assert is_already_running(outcome)
        assert isinstance(contend(), Ran)


@pytest.fixture
def other_role(database: Database, world: World) -> Iterator[str]:
    """A role that may use the tables and no more, as a second app's often is."""
    name = sql.Identifier(f"other_{uuid4().hex[:12]}")
    with database.connect() as admin:
        admin.execute(sql.SQL("CREATE ROLE {} LOGIN").format(name))
        admin.execute(sql.SQL("GRANT ALL ON ALL TABLES IN SCHEMA public TO {}").format(name))
        yield name.as_string().strip('"')
        admin.execute(sql.SQL("DROP OWNED BY {}").format(name))
        admin.execute(sql.SQL("DROP ROLE {}").format(name))


@pytest.mark.parametrize("how", ["job", "with_lock"])
def test_an_overdue_holder_that_the_role_may_not_end_is_logged(
    database: Database, world: World, other_role: str, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    url = make_url(database.url).set(username=other_role).render_as_string(hide_password=False)

    def contend() -> Outcome:
        if how == "job":
            return contender.run("report")
        with contender.app.app_context():
            return contender.cron.with_lock("report", lambda _: None, wait=0.1)

    with (
        bare_world(database, url=url) as contender,
        escaped(world, "report", timeout=BRISK) as holder,
    ):
        contender.cron.job("report", every="1d")(lambda: None)
        wait_until_overdue(database, BRISK)
        assert is_already_running(contend())
        assert [action for action, _ in about_overdue(caplog)] == ["overdue_holder_kept"]
        assert not free(database)

    with pytest.raises(JobTimeout):
        holder.result(10)


def is_already_running(outcome: Outcome) -> bool:
    return isinstance(outcome, Skipped) and outcome.reason is Reason.ALREADY_RUNNING
