"""The session a request used before its hit: clean, it makes way; with writes, it is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ..support.databases import Database
from ..support.endpoint import body_of
from ..support.worlds import World

pytestmark = pytest.mark.shared_database


ONE_CONNECTION = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 1}


def before_each_request(
    make_world: Callable[..., World], hook: Callable[[World], Any], **how: Any
) -> tuple[World, list[Any]]:
    """Return a world of one connection whose app calls *hook* first, and a list of what is in the
    caller's session after each answer."""
    world = make_world(engine_options=ONE_CONNECTION, **how)
    left: list[Any] = []
    world.app.before_request(lambda: hook(world) and None)

    @world.app.after_request
    def look(response: Any) -> Any:
        left.append(list(world.db.session.new))
        return response

    world.cron.job("x")(world.mark)
    return world, left


def add_model(world: World) -> Any:
    class Audit(world.db.Model):  # type: ignore[name-defined,misc]
        id = world.db.mapped_column(world.db.Integer, primary_key=True)
        text = world.db.mapped_column(world.db.Text)

    with world.app.app_context():
        world.db.create_all()
    world.database.query("INSERT INTO audit (id, text) VALUES (0, 'old') ON CONFLICT DO NOTHING")
    return Audit


def audits(world: World) -> list[tuple[Any, ...]]:
    return world.database.query("SELECT text FROM audit ORDER BY id")


def test_a_session_that_only_read_gives_its_connection_to_the_run(
    make_world: Callable[..., World],
) -> None:
    world, _ = before_each_request(
        make_world, lambda world: world.db.session.execute(world.db.text("SELECT 1"))
    )

    answers = [world.post("x"), world.post("x")]

    assert [body_of(answer)["outcome"] for answer in answers] == ["ran", "ran"]


def test_an_object_that_a_user_loader_loaded_can_be_used_after_the_run(
    make_world: Callable[..., World],
) -> None:
    loaded: list[Any] = []
    world, _ = before_each_request(
        make_world, lambda world: loaded.append(world.db.session.get(audit, 0))
    )
    audit = add_model(world)
    texts: list[str] = []
    world.app.after_request(lambda response: texts.append(loaded[-1].text) or response)

    assert body_of(world.post("x"))["outcome"] == "ran"
    assert texts == ["old"]


def test_a_session_with_a_pending_object_is_refused_and_left_as_it_is(
    make_world: Callable[..., World], caplog: pytest.LogCaptureFixture
) -> None:
    world, left = before_each_request(
        make_world, lambda world: world.db.session.add(audit(text="new"))
    )
    audit = add_model(world)

    response = world.post("x")

    assert response.status_code == 500
    assert body_of(response) == {"job": "x", "error": "Session holds uncommitted writes"}
    assert "commit them or roll them back before the run" in caplog.text
    assert [row.text for row in left[0]] == ["new"]
    assert world.marks == 0
    assert audits(world) == [("old",)]


def change(world: World, audit: Any) -> None:
    world.db.session.get(audit, 0).text = "changed"


def flush(world: World, audit: Any) -> None:
    world.db.session.add(audit(text="flushed"))
    world.db.session.flush()


def delete(world: World, audit: Any) -> None:
    world.db.session.delete(world.db.session.get(audit, 0))


def write_raw(world: World, _: Any) -> None:
    world.db.session.execute(world.db.text("UPDATE audit SET text = 'raw'"))


def write_in_savepoint(world: World, audit: Any) -> None:
    with world.db.session.begin_nested():
        write_raw(world, audit)


@pytest.mark.parametrize("write", [change, flush, delete, write_raw, write_in_savepoint])
def test_a_session_with_any_write_is_refused_and_can_still_be_committed(
    make_world: Callable[..., World], write: Callable[[World, Any], None]
) -> None:
    world, _ = before_each_request(make_world, lambda world: write(world, audit))
    audit = add_model(world)
    world.app.after_request(lambda response: world.db.session.commit() or response)

    response = world.post("x")

    assert response.status_code == 500
    assert body_of(response)["error"] == "Session holds uncommitted writes"
    assert world.marks == 0
    assert audits(world) != [("old",)]


def test_a_session_whose_transaction_is_aborted_has_nothing_to_lose(
    make_world: Callable[..., World],
) -> None:
    def abort(world: World) -> None:
        with pytest.raises(Exception, match="no_such_table"):
            world.db.session.execute(world.db.text("SELECT * FROM no_such_table"))

    world, _ = before_each_request(make_world, abort)

    assert body_of(world.post("x"))["outcome"] == "ran"


@pytest.mark.parametrize("reads_default_first", [True, False])
def test_writes_of_the_session_to_another_bind_are_refused_or_left_alone(
    make_world: Callable[..., World], database: Database, reads_default_first: bool
) -> None:
    """Only the default engine's transaction is in the way; where it is, all must be clean."""

    def write(world: World) -> None:
        if reads_default_first:
            world.db.session.execute(world.db.text("SELECT 1"))
        world.db.session.execute(
            world.db.text("INSERT INTO note VALUES ('other bind')"),
            bind_arguments={"bind": world.db.engines["other"]},
        )

    world, _ = before_each_request(make_world, write, SQLALCHEMY_BINDS={"other": database.url})
    world.app.after_request(lambda response: world.db.session.commit() or response)

    response = world.post("x")

    assert response.status_code == (500 if reads_default_first else 200)
    assert world.notes == ["other bind"]


def test_a_dirty_session_hides_neither_a_wrong_secret_nor_an_unknown_job(
    make_world: Callable[..., World],
) -> None:
    world, _ = before_each_request(make_world, lambda world: world.note("before"))
    world.cron.job("y")(world.mark)

    assert world.post("x", secret="wrong").status_code == 401
    assert world.post("no-such-job").status_code == 404
    assert world.post("y").status_code == 500
    assert world.notes == []


@pytest.mark.parametrize("name", ["x", "failing", "no-such-job"])
def test_one_connection_is_enough_whatever_becomes_of_the_hit(
    make_world: Callable[..., World], name: str
) -> None:
    world, _ = before_each_request(
        make_world, lambda world: world.db.session.execute(world.db.text("SELECT 1"))
    )
    world.cron.job("failing")(lambda: 1 / 0)

    statuses = {world.post(name).status_code for _ in range(3)}

    assert statuses == {{"x": 200, "failing": 500, "no-such-job": 404}[name]}
    assert len(world.attempts()) == (3 if name == "failing" else 0)
