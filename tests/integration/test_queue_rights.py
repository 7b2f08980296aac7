"""A role that owns nothing, with the rights that the documentation lists: all goes on under it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url

from ..support.commands import cron, stranger_to
from ..support.databases import Database
from ..support.errands import told
from ..support.errands import work as run_on_worker
from ..support.instances import ROOT
from ..support.outcomes import LONG, value_of
from ..support.queue_workers import Workshop
from ..support.tasks import rows, work, work_to_the_end
from ..support.worlds import World, bare_world

LISTED = re.compile(r"^GRANT .*?;$", re.DOTALL | re.MULTILINE)


def listed() -> list[str]:
    """Return the statements of the documentation."""
    return LISTED.findall(Path(ROOT, "docs/configuration.md").read_text())


@pytest.fixture
def url(database: Database) -> Iterator[str]:
    """The address of the database for a role with the listed rights, and with no other."""
    Workshop(database).set_up()
    database.query("REVOKE ALL ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC")
    database.query("REVOKE ALL ON SCHEMA public FROM PUBLIC")
    with stranger_to(database) as url:
        role = make_url(url).username
        try:
            for statement in listed():
                database.query(statement.replace("TO shop", f"TO {role}"))
            yield url
        finally:
            database.query(f"DROP OWNED BY {role}")


def test_it_defers_works_off_gives_up_and_takes_up_again(database: Database, url: str) -> None:
    fails = [True]
    with bare_world(database, url=url) as world:

        @world.cron.task(attempts=1, delivery="at_least_once")
        def send(n: int) -> None:
            if fails.pop():
                raise ValueError("as asked")

        world.cron.job("digest", every=LONG)(lambda run: run.defer(send, n=1))
        world.cron.job("nightly", every=LONG, on="worker")(lambda: 3)
        value_of(world.run("digest"))
        [row] = rows(world)
        work_to_the_end(world, row)
        database.query("DELETE FROM procrastinate_jobs")
        result = cron(world, "items", "--retry-all", "--state", "doubt")
        assert result.stdout.startswith("1 deferred"), result.output
        fails.append(False)
        assert work(world, rows(world)[0]).done == 1
        database.query("DELETE FROM procrastinate_jobs")
        answer = world.post("nightly")
        assert run_on_worker(world) == "done"
        assert told(world, answer)["outcome"] == "ran"
        with world.app.app_context():
            assert world.cron.once("mail 7")
            world.db.session.commit()


def test_a_worker_of_it_takes_rows_and_removes_what_ended_long_ago(
    database: Database, url: str, world: World
) -> None:
    database.query("GRANT ALL ON called, noted TO PUBLIC")
    database.query(
        "INSERT INTO cronlock_item (key, namespace, task, state, attempts, in_doubt, instance,"
        " started_at, finished_at) VALUES ('old', '', 'note', 'done', 1, false, 'x',"
        " now() - interval '40 days', now() - interval '40 days')"
    )
    workshop = Workshop(database)
    workshop.defer("note", "first")
    workshop.defer("call", "second", queue="mail")
    with workshop.worker(url=url) as worker:
        workshop.wait_until_empty()
        worker.wait_for("The worker removed what had ended: ")
        assert worker.end() == 0
        said = worker.said()
    assert "Traceback" not in said
    assert "permission" not in said
    assert workshop.noted() == ["first"]
    assert database.value("SELECT count(*) FROM cronlock_item WHERE key = 'old'") == 0
