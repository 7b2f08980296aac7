"""Who bears the secret is let in; bytes are compared, in constant time, and nothing is shown."""

from __future__ import annotations

import hmac
import json
import logging
from typing import Any

import pytest
from flask import Request
from werkzeug.test import EnvironBuilder

from flask_cronlock.auth import BearerSecret
from flask_cronlock.exceptions import SecretMissing
from flask_cronlock.texts import error_text, loggable, redacted, value_text

SECRET = b"a-secret-of-good-length"
NOT_ASCII = "schlüssel-für-cron-€".encode()


def let_in(header: str | bytes | None, *secrets: bytes) -> bool:
    environ = EnvironBuilder(method="POST").get_environ()
    if header is not None:
        # A server hands the header's bytes over as latin-1.
        text = header.decode("latin-1") if isinstance(header, bytes) else header
        environ["HTTP_AUTHORIZATION"] = text
    return BearerSecret(secrets or (SECRET,)).authenticate(Request(environ))


@pytest.mark.parametrize("scheme", [b"Bearer", b"bearer", b"BEARER"])
def test_the_bearer_of_the_secret_is_let_in(scheme: bytes) -> None:
    assert let_in(scheme + b" " + SECRET)


@pytest.mark.parametrize(
    "header",
    [
        None,
        b"",
        b"Bearer",
        b"Bearer ",
        b"Bearer  " + SECRET,
        b"Bearer\t" + SECRET,
        b" Bearer " + SECRET,
        b"Bearer " + SECRET + b" ",
        b"Bearer " + SECRET + b"\0",
        b"\0",
        b"Bearer " + SECRET[:-1],
        b"Bearer " + SECRET + b"x",
        b"Bearer " + SECRET.upper(),
        b"Bearer " + SECRET + b",Bearer " + SECRET,
        b'Bearer "' + SECRET + b'"',
        b"Bearer token=" + SECRET,
        b"Bearer undefined",
        b"Bearer None",
        b"Basic " + SECRET,
        SECRET,
        b"Bearer \xe9",
        b"Bearer " + b"x" * 100_000,
        "Bearer \u20ac beyond latin-1",
        b"\xff" * 100,
    ],
    ids=lambda header: repr(header)[:40],
)
def test_any_other_header_is_wrong_and_never_an_error(header: Any) -> None:
    assert let_in(header) is False
    assert let_in(header, NOT_ASCII, SECRET + b"-2") is False


def test_a_secret_that_is_not_ascii_is_compared_as_its_bytes() -> None:
    assert let_in(b"Bearer " + NOT_ASCII, SECRET, NOT_ASCII)
    assert not let_in("schlüssel-für-cron-€".encode("latin-1", "replace"), NOT_ASCII)


def test_a_secret_may_have_blanks_inside() -> None:
    assert let_in(b"Bearer correct horse battery", b"correct horse battery")


def test_every_secret_is_compared_in_constant_time_as_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[tuple[Any, Any]] = []

    def compare(one: Any, other: Any) -> bool:
        compared.append((one, other))
        return False

    monkeypatch.setattr(hmac, "compare_digest", compare)

    assert let_in(b"Bearer " + SECRET, SECRET, NOT_ASCII) is False
    assert compared == [(SECRET, SECRET), (SECRET, NOT_ASCII)]


def test_a_match_does_not_spare_the_other_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    monkeypatch.setattr(hmac, "compare_digest", lambda *pair: compared.append(pair) or True)

    assert let_in(b"Bearer " + SECRET, SECRET, NOT_ASCII)
    assert len(compared) == 2


@pytest.mark.parametrize(
    "header", [None, b"Bearer ", b"Bearer None", b"Bearer null", b"Bearer undefined", b'Bearer ""']
)
def test_without_a_secret_nobody_is_let_in(header: bytes | None) -> None:
    environ = EnvironBuilder(method="POST").get_environ()
    environ["HTTP_AUTHORIZATION"] = (header or b"").decode()

    with pytest.raises(SecretMissing, match="set CRONLOCK_SECRET or CRON_SECRET"):
        BearerSecret(()).authenticate(Request(environ))


def test_the_log_says_which_secret_matched_and_not_what_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG):
        assert let_in(b"Bearer " + SECRET, NOT_ASCII, SECRET)

    assert "number 2 matched" in caplog.text
    assert SECRET.decode() not in caplog.text


def test_an_authenticator_does_not_show_its_secrets() -> None:
    assert SECRET.decode() not in repr(BearerSecret([SECRET]))


@pytest.mark.parametrize("secret", [SECRET, NOT_ASCII, b'it\'s "quoted" \\ back', b"\x80\xff" * 8])
@pytest.mark.parametrize(
    "shown",
    [
        str,
        repr,
        ascii,
        json.dumps,
        lambda text: str({"Authorization": f"Bearer {text}"}),
        lambda text: json.dumps({"header": text}, ensure_ascii=False),
    ],
    ids=["str", "repr", "ascii", "json", "headers", "unicode json"],
)
@pytest.mark.parametrize("encoding", ["latin-1", "utf-8"])
def test_a_secret_is_blotted_out_however_it_is_written(
    secret: bytes, shown: Any, encoding: str
) -> None:
    plain = secret.decode(encoding, "replace")
    written = shown(plain)

    blotted = redacted(f"before {written} after", [b"another-secret-than-that", secret])

    assert "[secret]" in blotted
    assert written.strip("\"'") not in blotted
    assert blotted.startswith("before ")
    assert blotted.endswith(" after")


def test_a_secret_that_goes_on_where_another_ends_is_blotted_out_whole() -> None:
    longer = SECRET + b"-and-more"

    for secrets in ([SECRET, longer], [longer, SECRET]):
        assert redacted(f"sent {longer.decode()}.", secrets) == "sent [secret]."


def test_a_secret_is_blotted_out_before_the_text_is_cut() -> None:
    for shift in range(900, 1000):
        text = error_text(ValueError("x" * shift + SECRET.decode()), [SECRET])
        assert SECRET.decode()[:6] not in text
        value = value_text("x" * (shift - 500) + SECRET.decode() * 30, [SECRET])
        assert SECRET.decode()[:6] not in value


def test_a_traceback_with_a_secret_in_its_cause_goes_into_the_log_as_redacted_text() -> None:
    cause = ValueError(f"Bearer {SECRET.decode()}")
    error = RuntimeError("failed")
    error.__cause__ = cause

    shown, text = loggable(error, [SECRET])

    assert shown is None
    assert SECRET.decode() not in text
    assert "ValueError: Bearer [secret]" in text
    assert "RuntimeError: failed" in text


def test_a_traceback_without_a_secret_goes_into_the_log_as_it_is() -> None:
    error = RuntimeError("failed")

    assert loggable(error, [SECRET]) == (error, "")
