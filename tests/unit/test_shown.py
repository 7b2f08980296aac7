"""What a caller gave is shown in the error that refuses it, but never for pages."""

from __future__ import annotations

from flask_cronlock.texts import shown


def test_it_is_shown_from_its_start() -> None:
    assert shown("short") == "'short'"
    assert shown("x" * 10_000) == "'" + "x" * 79
