"""A worker whose database goes away waits for it, with what it has in hand, and goes on."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import pytest
from sqlalchemy import make_url

from ..support.clock_processes import TRACEBACK
from ..support.databases import Database, Server, fresh_database, temporary
from ..support.logged import Process
from ..support.pgbouncer import pgbouncer_before
from ..support.processes import wait_until
from ..support.queue_workers import QUICK, Workshop

STALLED_AFTER = QUICK["heart.STALLED_AFTER"]
HEARS_ONLY = {**QUICK, "connecting.LISTENING_POLL": 3600}
"""Of a worker that listens: what it does it has heard of."""
LOST, AGAIN = "The database does not answer the worker: ", "It answers the worker again.\n"


@pytest.fixture
def own_server() -> Iterator[Server]:
    with temporary() as server:
        yield server


@pytest.fixture
def workshop(own_server: Server) -> Iterator[Workshop]:
    with fresh_database(own_server) as database:
        made = Workshop(database)
        made.set_up()
        yield made


def heartbeat_age(database: Database) -> float:
    return float(
        database.value(
            "SELECT extract(epoch FROM now() - max(last_heartbeat)) FROM procrastinate_workers"
        )
    )


def told_of_one_outage(worker: Process) -> None:
    said = worker.said()
    assert said.count(LOST) == said.count(AGAIN) == 1, said
    assert TRACEBACK not in said


def test_a_row_in_hand_goes_on_over_an_outage_and_the_worker_after_it(
    workshop: Workshop, own_server: Server
) -> None:
    with workshop.worker() as worker:
        workshop.defer("call", "during", queue="mail", seconds=4)
        workshop.wait_for_begun("during")
        own_server.stop()
        worker.wait_for(LOST)
        time.sleep(5)
        own_server.start()
        worker.wait_for(AGAIN)
        workshop.defer("note", "after")
        workshop.wait_until_empty(60)
        wait_until(lambda: heartbeat_age(workshop.database) < 3)
        time.sleep(4)
        assert heartbeat_age(workshop.database) < 4
        assert worker.end() == 0
        told_of_one_outage(worker)
    assert workshop.begun("during") == ["during"]
    assert workshop.noted() == ["after"]


def test_after_an_outage_no_worker_takes_another_one_for_dead(
    workshop: Workshop, own_server: Server
) -> None:
    """None has shown a sign of life meanwhile."""
    with workshop.worker() as one, workshop.worker() as two:
        names = [f"call-{number}" for number in range(6)]
        workshop.defer("call", *names, queue="mail", seconds=STALLED_AFTER + 20)
        wait_until(lambda: len(workshop.begun()) == 6)
        own_server.stop()
        one.wait_for(LOST)
        two.wait_for(LOST)
        time.sleep(STALLED_AFTER + 2)
        own_server.start()
        one.wait_for(AGAIN)
        two.wait_for(AGAIN)
        workshop.wait_until_empty(90)
        assert one.end() == two.end() == 0
        assert "was put back" not in one.said() + two.said()
    assert sorted(workshop.begun()) == names


def test_a_worker_listens_again_after_an_outage(workshop: Workshop, own_server: Server) -> None:
    url = workshop.database.url
    with workshop.worker(CRONLOCK_WORKER_URL=url, times=HEARS_ONLY) as worker:
        workshop.defer_until_heard("before")
        own_server.stop()
        worker.wait_for("The worker cannot listen")
        own_server.start()
        workshop.defer_until_heard("after")
        assert worker.end() == 0
        assert TRACEBACK not in worker.said(), worker.said()


def test_a_stop_while_the_database_is_away_takes_no_grace(
    workshop: Workshop, own_server: Server
) -> None:
    with workshop.worker("--grace", "1h") as worker:
        own_server.stop()
        worker.wait_for(LOST)
        assert worker.end(signal.SIGTERM, 20) == 0
        assert worker.said().endswith("The worker stopped.\n")
        assert TRACEBACK not in worker.said()
        own_server.start()


def test_a_worker_that_begins_before_the_database_waits_for_it(
    workshop: Workshop, own_server: Server
) -> None:
    own_server.stop()
    with workshop.worker(begins=False) as worker:
        worker.wait_for("The database does not answer yet: ")
        own_server.start()
        worker.wait_for("The worker began")
        workshop.defer("note", "after")
        workshop.wait_until_empty()
        assert worker.end() == 0
    assert workshop.noted() == ["after"]


def test_a_worker_whose_own_address_does_not_answer_yet_waits_for_it(workshop: Workshop) -> None:
    with pgbouncer_before(workshop.database.server) as there:
        there.stop()
        url = make_url(there.url(workshop.database)).set(password="p4ssw0rd")
        address = url.render_as_string(hide_password=False)
        with workshop.worker(begins=False, CRONLOCK_WORKER_URL=address) as worker:
            worker.wait_for("The database does not answer yet: ")
            there.start()
            worker.wait_for("The worker began")
            workshop.defer("note", "after")
            workshop.wait_until_empty()
            assert worker.end() == 0
            said = worker.said()
    assert "that of CRONLOCK_WORKER_URL (OperationalError: " in said
    assert said.count("The database answers.\n") == 1
    assert "p4ssw0rd" not in said
    assert TRACEBACK not in said
    assert workshop.noted() == ["after"]
