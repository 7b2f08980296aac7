"""Values and errors become short text that a table, an answer and a log can hold."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from flask import Response

from flask_cronlock.texts import LONGEST_ERROR, LONGEST_VALUE, error_text, redacted, value_text

from ..support.values import Unspeakable, deep, endless


@pytest.mark.parametrize(
    "value", [None, 0, -1, 1.5, True, "", "café", "\0", "\ud800", [1, 2], {"a": {"b": None}}]
)
def test_what_json_has_a_form_for_is_kept_exactly(value: Any) -> None:
    assert json.loads(value_text(value)) == value


def test_a_tuple_is_a_list_and_no_status() -> None:
    assert json.loads(value_text(("x", 500))) == ["x", 500]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Decimal("1.10"), "Decimal('1.10')"),
        (datetime(2024, 1, 1, tzinfo=UTC), "datetime.datetime(2024, 1, 1"),
        ({7}, "{7}"),
        (b"\xff\0", "b'\\xff\\x00'"),
        (math.nan, "nan"),
        (math.inf, "inf"),
        ([math.nan], "[nan]"),
        ((item for item in ()), "<generator"),
        (endless(), "[[...]]"),
        (Response("x", 500), "<Response"),
        (Unspeakable(), "<Unspeakable>"),
        ([Unspeakable()], "<list>"),
        pytest.param(10**5000, "<int>", id="a huge int"),
        (deep(), ""),
        ({(1, 2): 3}, "{(1, 2): 3}"),
    ],
)
def test_what_json_has_no_form_for_is_shown(value: Any, shown: str) -> None:
    found = json.loads(value_text(value))
    assert isinstance(found, str)
    assert found.startswith(shown)


@pytest.mark.parametrize("character", ["x", "\0", "é", "\U0001f600", '"', "\ud800"])
def test_a_long_value_is_cut(character: str) -> None:
    text = value_text(character * 5_000_000)
    assert len(text) <= LONGEST_VALUE
    assert text.isascii()
    assert json.loads(text).endswith("…")


def test_an_error_is_its_class_and_first_line() -> None:
    assert error_text(ValueError("one\ntwo")) == "ValueError: one"


def test_a_long_error_is_cut() -> None:
    assert len(error_text(ValueError("x" * 10_000))) == LONGEST_ERROR


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b", "a\x1b[31mb", "a\rb", "a\u2028b"])
def test_an_errors_text_is_storable_and_shows_what_is_unprintable(text: str) -> None:
    found = error_text(ValueError(text))
    found.encode()
    assert found.isprintable()
    assert found.startswith("ValueError: a\\")
    assert found.endswith("b")


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Wrong(Exception):
    def __str__(self) -> str:
        return 7  # type: ignore[return-value]


@pytest.mark.parametrize("error", [Mute(), Wrong()])
def test_an_error_whose_text_cannot_be_had_is_still_named(error: Exception) -> None:
    assert error_text(error).startswith(f"{type(error).__name__}: ")


def test_secrets_are_blotted_out_in_every_form() -> None:
    secret = 's3crét-"quoted"-secret'
    for form in (secret, repr(secret), json.dumps(secret), secret.encode().decode("latin-1")):
        assert "s3cr" not in redacted(f"<{form}>", [secret.encode()])
        assert "s3cr" not in error_text(ValueError(form), [secret.encode()])
