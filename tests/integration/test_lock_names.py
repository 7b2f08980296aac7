"""What a lock may be called; no two names are one lock."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from flask_cronlock import Reason
from flask_cronlock.exceptions import LockNameError
from flask_cronlock.locks import lock_text

from ..support.locking import held, locked
from ..support.outcomes import reason_of, value_of
from ..support.worlds import World


@pytest.fixture
def world(entered_world: World) -> World:
    return entered_world


UUIDS = [UUID(int=7), UUID(int=8)]
DISTINCT: list[Any] = [
    *("customer", ("customer", 42), ("customer", "42"), ("customer", -42), ("customer", "")),
    *(("customer", 4, 2), ("customer", "4", "2"), ("customer", "4,2"), ("customer", '4","2')),
    *(("customer", "a", "b"), ("customer", "a/b"), ("customer", "ab"), ("customer", "é")),
    *(("customer", UUIDS[0]), ("customer", UUIDS[1])),
]


@pytest.mark.parametrize("namespace", ["", "prod"])
def test_no_two_names_share_a_text(namespace: str) -> None:
    texts = [lock_text(namespace, name) for name in DISTINCT]
    assert len(set(texts)) == len(DISTINCT)
    assert all(found.startswith(f"{namespace}:" if namespace else "") for found in texts)
    assert not set(texts) & {lock_text("customer", name) for name in DISTINCT}


def test_composite_names_serialise_per_customer(world: World) -> None:
    with held(world, ("customer", 42)):
        work = world.note
        value_of(locked(world, ("customer", 43), lambda session: work("43")))
        value_of(locked(world, ("customer", "42"), lambda session: work("text 42")))
        value_of(locked(world, "customer", lambda session: work("customer")))
        value_of(locked(world, ("customer", uuid4()), lambda session: work("uuid")))
        again = locked(world, ("customer", 42), lambda session: work("never"))

    assert reason_of(again) is Reason.ALREADY_RUNNING
    assert world.notes == ["43", "customer", "text 42", "uuid"]


@pytest.mark.parametrize(
    "name",
    [
        *("", "Cache", "a b", "a:b", '["customer",42]', "x" * 64, None, 7, b"cache"),
        *((), ("customer",), ("Customer", 1), (42, "customer"), ["customer", 42]),
        *(("customer", True), ("customer", None), ("customer", 1.0), ("customer", object())),
        *(("customer", b"42"), ("customer", ("nested", 1))),
    ],
)
def test_a_name_whose_text_is_not_the_same_everywhere_is_refused(world: World, name: Any) -> None:
    with pytest.raises(LockNameError, match="Name a lock by"):
        world.cron.with_lock(name, lambda session: world.mark())
    assert world.marks == 0
