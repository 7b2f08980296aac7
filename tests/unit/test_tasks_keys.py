"""An item's key: the same for the same slot, task and arguments, and for nothing else."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from flask_sqlalchemy import SQLAlchemy

from flask_cronlock import CronLock
from flask_cronlock.queue.item import Item
from flask_cronlock.queue.origin import Origin
from flask_cronlock.queue.task import Task

ORIGIN = Origin("shop", "digest/2026-01-05T07:00+01:00", "digest", "2026-01-05T07:00:00+01:00")


def task(key: Any = (), name: str = "send") -> Task:
    cron = CronLock(SQLAlchemy())
    cron.task(name, key=key)(lambda **arguments: None)
    return cron.tasks.get(name)


def test_a_key_is_readable_where_one_short_argument_tells_the_item() -> None:
    shown = "shop/digest/2026-01-05T07:00+01:00/send/"
    assert ORIGIN.key(task("user_id"), {"user_id": 42, "name": "Ada"}) == f"{shown}42"
    assert ORIGIN.key(task(), {"user_id": 42}) == f'{shown}{{"user_id": 42}}'
    mail = ORIGIN.key(task("mail"), {"mail": "ada+1@example.com"})
    assert mail.endswith("/send/ada+1@example.com")


def test_the_arguments_that_key_names_tell_one_item_from_another() -> None:
    chosen = task(["user_id", "kind"])
    one = ORIGIN.key(chosen, {"user_id": 1, "kind": "a", "name": "Ada"})
    assert one == ORIGIN.key(chosen, {"name": "Grace", "kind": "a", "user_id": 1})
    assert one != ORIGIN.key(chosen, {"user_id": 1, "kind": "b", "name": "Ada"})
    assert one != ORIGIN.key(chosen, {"user_id": 1, "name": "Ada"})


def test_another_argument_of_the_same_value_is_another_item() -> None:
    assert ORIGIN.key(task(), {"user_id": 1}) != ORIGIN.key(task(), {"team_id": 1})
    assert ORIGIN.key(task("n"), {"n": None}) != ORIGIN.key(task("n"), {})


@pytest.mark.parametrize("value", [1.0, 1e16, 1.2345678901234568e16, [2.0, {"n": 3.0}]])
def test_a_value_has_the_same_key_once_it_has_been_in_the_database(value: Any) -> None:
    """There the float of a whole number is a number like any other."""
    kept = json.loads(json.dumps(value), parse_float=lambda text: int(float(text)))
    for key in ((), "n"):
        assert ORIGIN.key(task(key), {"n": value}) == ORIGIN.key(task(key), {"n": kept})


VALUES = [
    1,
    -1,
    1.5,
    "1",
    "-1",
    True,
    "True",
    "true",
    None,
    "None",
    "null",
    "",
    [1],
    {"n": 1},
    '{"n": [1]}',
    '{"n": null}',
    '{"n": "1"}',
    '"1"',
    "a",
    "a/b",
    "a" * 80,
    "a" * 81,
    "a" * 82,
]


def test_two_values_never_have_one_key() -> None:
    chosen = task("n")
    keys = [ORIGIN.key(chosen, {"n": value}) for value in VALUES]
    # What a hash stands for in a key is no key of its own.
    hashed = [key.rpartition("/")[2] for key in keys[-2:]]
    values = [*hashed, *(hash.removeprefix("#") for hash in hashed)]
    keys += [ORIGIN.key(chosen, {"n": value}) for value in values]
    pairs = itertools.combinations(keys, 2)
    assert [one for one, other in pairs if one == other] == []


@pytest.mark.parametrize(
    "other",
    [
        replace(ORIGIN, namespace="other"),
        replace(ORIGIN, scope="digest/2026-01-06T07:00+01:00"),
        replace(ORIGIN, scope="news/2026-01-05T07:00+01:00"),
        Origin.elsewhere("shop"),
    ],
    ids=["namespace", "slot", "job", "elsewhere"],
)
def test_another_namespace_job_or_slot_has_other_keys(other: Origin) -> None:
    assert other.key(task(), {"n": 1}) != ORIGIN.key(task(), {"n": 1})
    assert ORIGIN.key(task(name="other"), {"n": 1}) != ORIGIN.key(task(), {"n": 1})


def test_each_call_elsewhere_is_an_origin_of_its_own() -> None:
    assert Origin.elsewhere("shop") != Origin.elsewhere("shop")


def test_a_long_key_is_hashed_and_short_enough_for_an_index() -> None:
    long = ORIGIN.key(task(), {"text": "ä" * 100_000})
    assert len(long) < 200
    assert long != ORIGIN.key(task(), {"text": "ä" * 100_001})


def test_an_origin_comes_back_from_json_as_it_was() -> None:
    assert Origin.from_json(ORIGIN.as_json()) == ORIGIN
    assert Origin.from_json(ORIGIN.as_json() | {"of_a_later_release": 1}) == ORIGIN
    elsewhere = Origin.elsewhere("")
    assert Origin.from_json(elsewhere.as_json()) == elsewhere
    assert elsewhere.slot_at is None


def test_what_a_provider_is_given_follows_from_the_key_alone() -> None:
    one, again, other = (Item.of(task(), ORIGIN, {"n": n}) for n in (1, 1, 2))
    assert re.fullmatch("[0-9a-f]{64}", one.token)
    assert (one.token, one.message_id("a.example")) == (again.token, again.message_id("a.example"))
    assert one.token != other.token
    assert one.message_id("a.example") == f"<{one.token}@a.example>"
