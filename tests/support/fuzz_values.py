"""What a job may return or raise: plain values, and objects that are hostile to their readers."""

from __future__ import annotations

from typing import Any

from flask import current_app, request
from hypothesis import strategies as st

from .values import Unspeakable, endless
from .worlds import SECRET


class Text(str):
    """Text of which nothing but the characters can be had."""

    def _refuse(self, *_: object) -> Any:
        raise RuntimeError("no way")

    __len__ = __getitem__ = __str__ = __format__ = replace = partition = encode = _refuse


class Shown:
    """An object that is shown by such a text."""

    def __repr__(self) -> str:
        return Text("shown")


class Disguised:
    """An object that does not tell its class, and has no attributes."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")


class Entries(dict[Any, Any]):
    """A mapping that does not tell what is in it."""

    def items(self) -> Any:
        raise RuntimeError("no items")

    __iter__ = __len__ = __repr__ = items


class Jsonable:
    """An object with the methods that some encoders ask for."""

    def __json__(self) -> Any:
        raise RuntimeError("no JSON")

    __html__ = to_json = _asdict = for_json = __json__


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Mumbling(Exception):
    def __str__(self) -> str:
        return Text("mumbled")


class Noted(Exception):
    """An error whose notes cannot be had."""

    @property
    def __notes__(self) -> list[str]:
        raise RuntimeError("no notes")


class OddName(Exception):
    pass


OddName.__qualname__ = "Odd\0\ud800\n"


def _generator() -> Any:
    yield 1


hostile_values = st.builds(
    lambda make: make(),
    st.sampled_from(
        [
            *(Unspeakable, Shown, Disguised, Jsonable, endless, _generator, object),
            *(lambda: Text("text"), lambda: Text("x" * 600), lambda: Entries(a=1)),
            *(lambda: 10**10_000, lambda: [10**10_000], lambda: request, lambda: current_app),
            *(lambda: {(1, 2): 3, None: 4}, lambda: {1: 1, "1": 2}, lambda: {Unspeakable(): 1}),
            *(lambda: "\ud800", lambda: "\0", lambda: b"\xff", lambda: "x" * 10**6),
            *(lambda: SECRET, lambda: {SECRET: SECRET.encode()}, lambda: "é" * 499 + SECRET),
        ]
    ),
)
any_text = st.text(st.characters(), max_size=600)
plain_values = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.decimals(), st.datetimes()),
    *(any_text, st.binary(max_size=50), st.uuids(), st.complex_numbers(), st.fractions()),
)
keys = st.one_of(any_text, st.integers(), st.floats(), st.none(), st.booleans(), st.binary())
values = st.recursive(
    plain_values | hostile_values,
    lambda inner: st.one_of(
        st.lists(inner, max_size=6),
        st.dictionaries(keys, inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
    ),
)


def _with_cause(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


def _with_note(error: BaseException, note: str) -> BaseException:
    error.add_note(note)
    return error


messages = st.one_of(
    any_text,
    st.sampled_from([SECRET, "x" * 990 + SECRET, f"\ud800{SECRET}\0", "é" * 2000, "a\0b", ""]),
    hostile_values,
)
plain_errors = st.one_of(
    st.builds(lambda kind, text: kind(text), st.sampled_from([ValueError, KeyError, OSError]),
              messages),
    st.builds(lambda make, text: make(text),
              st.sampled_from([Mute, Mumbling, Noted, OddName]), messages),
    st.sampled_from([SyntaxError("m", (1, 2, 3, 4)), SyntaxError("m", ("f", "a", "b", "c"))]),
    st.builds(lambda: UnicodeDecodeError(SECRET, b"x", 0, 1, "\ud800")),
    st.builds(SystemExit, any_text),
)  # fmt: skip
errors = st.one_of(
    plain_errors,
    st.builds(_with_cause, plain_errors, plain_errors),
    st.builds(_with_note, st.builds(ValueError), any_text | st.just(SECRET)),
    st.builds(
        lambda found: BaseExceptionGroup("several", found),
        st.lists(plain_errors, min_size=1, max_size=3),
    ),
)
