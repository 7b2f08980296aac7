"""A run holds one advisory lock, however many users it is for."""

from __future__ import annotations

from sqlalchemy import text, update

from flask_cronlock import Run

from ..support.databases import ADVISORY_LOCKS
from ..support.outcomes import LONG, value_of
from ..support.tasks import rows
from ..support.worlds import World

USERS = 20_000


def test_a_digest_for_20000_users_holds_one_lock(entered_world: World) -> None:
    world = entered_world
    note = world.note_class
    world.database.query("INSERT INTO note SELECT i::text FROM generate_series(1, %s) AS i", USERS)
    world.cron.task("send")(lambda text: None)

    @world.cron.job(every=LONG)
    def digest(run: Run) -> tuple[int, int, int]:
        stamp = update(note).values(text=note.text + "!").returning(note.text)
        marked = run.defer_from("send", stamp, batch=500)
        listed = run.session.execute(text("SELECT text FROM note")).scalars()
        again = run.defer_many("send", ({"text": name} for name in listed), batch=500)
        mine = f"SELECT count(*) FROM {ADVISORY_LOCKS} AND pid = pg_backend_pid()"
        return marked, again, run.session.scalar(text(mine)) or 0

    assert value_of(world.run("digest")) == (USERS, USERS, 1)
    assert len(rows(world)) == 2 * USERS / 500
    assert world.database.advisory_locks() == 0
