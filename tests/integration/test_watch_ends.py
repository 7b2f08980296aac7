"""A watch that cannot be ended in order is over all the same for the thread."""

from __future__ import annotations

from typing import Any

import pytest

from flask_cronlock.watch import Watch

from ..support.outcomes import LONG, error_of, value_of
from ..support.worlds import World

pytestmark = pytest.mark.shared_database


def test_a_thread_can_write_again_after_an_end_that_was_interrupted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: Watch) -> None:
        raise MemoryError

    world.cron.job("digest", every=LONG)(lambda: world.note("of the run"))
    with monkeypatch.context() as patch:
        patch.setattr(Watch, "end", interrupt)
        assert type(error_of(world.run("digest"))) is MemoryError

    text: Any = world.db.text
    with world.app.app_context(), world.db.engine.begin() as connection:
        connection.execute(text("INSERT INTO note VALUES ('of a view')"))
        with world.db.engine.begin() as second:
            second.execute(text("INSERT INTO note VALUES ('on a second one')"))
    value_of(world.run("digest"))
    assert world.notes == ["of a view", "of the run", "on a second one"]
