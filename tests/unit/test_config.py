"""Settings: where they come from, and what is refused with its cure."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest

from flask_cronlock.config import SHORTEST_HISTORY, Config
from flask_cronlock.exceptions import ConfigError
from flask_cronlock.queue.registration import MOST_ATTEMPTS
from flask_cronlock.queue.task import LONGEST_WAIT

GOOD = "a-secret-of-good-length"


def load(environ: dict[str, str] | None = None, **config: Any) -> Config:
    keys = {f"CRONLOCK_{key.upper()}": value for key, value in config.items()}
    return Config.load(keys, {}, environ or {})


def test_an_argument_of_the_constructor_wins_over_its_key() -> None:
    config = Config.load({"CRONLOCK_TIMEOUT": "10s"}, {"timeout": "20s"}, {})

    assert config.timeout == timedelta(seconds=20)


def test_an_unknown_argument_is_refused_with_the_known_ones() -> None:
    with pytest.raises(TypeError, match="no setting 'secrets'; the settings are secret, namespace"):
        Config.checked_names({"secrets": GOOD})


def test_an_unknown_key_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    Config.load({"CRONLOCK_SECRETS": GOOD}, {}, {})

    assert "CRONLOCK_SECRETS is not a configuration key" in caplog.text
    assert GOOD not in caplog.text


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("namespace", ""),
        ("namespace", "Prod"),
        ("namespace", "a:b"),
        ("namespace", "cronlock"),
        ("url_prefix", ""),
        ("url_prefix", "/"),
        ("url_prefix", "api/cron"),
        ("url_prefix", "/api//cron"),
        ("url_prefix", "/<job>"),
        ("url_prefix", "/api/cron\n"),
        ("timezone", "Europe/Berlinn"),
        ("timezone", ""),
        ("timeout", 0),
        ("timeout", "25d"),
        ("timeout", "soon"),
        ("early", -1),
        ("in_flight_status", "409"),
        ("in_flight_status", True),
        ("in_flight_status", 199),
        ("in_flight_status", 204),
        ("in_flight_status", 302),
        ("in_flight_status", 304),
        ("in_flight_status", 600),
        ("enabled", "false"),
        ("enabled", 0),
        ("slot_header", ""),
        ("slot_header", True),
        ("slot_header", "X-Slot:"),
        ("slot_header", "X Slot"),
        ("slot_header", "X_Slot"),
        ("slot_header", "X-Slot\n"),
        ("slot_header", "X-Slot, X-Other"),
        ("slot_header", "X-\u212aey"),
        ("slot_header", ["X-Slot"]),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_by_its_name(key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"CRONLOCK_{key.upper()}"):
        load(**{key: value})


@pytest.mark.parametrize("status", [200, 202, 409, 423, 503])
def test_a_status_that_can_have_a_body_is_taken(status: int) -> None:
    assert load(in_flight_status=status).in_flight_status == status


def test_by_default_no_header_names_a_slot() -> None:
    assert load().slot_header is None


@pytest.mark.parametrize("name", ["X-CloudScheduler-ScheduleTime", "x-slot", "Slot", "X-1"])
def test_a_header_of_its_own_may_name_the_slot(name: str) -> None:
    assert load(slot_header=name).slot_header == name
    assert Config.load({}, {"slot_header": name}, {}).slot_header == name


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "authorization",
        "Proxy-Authorization",
        "Host",
        "Cookie",
        "Content-Type",
        "CONTENT-LENGTH",
        "Date",
        "If-Modified-Since",
        "User-Agent",
        "X-Forwarded-For",
    ],
)
def test_a_header_that_carries_something_else_names_no_slot(name: str) -> None:
    with pytest.raises(ConfigError, match=r"CRONLOCK_SLOT_HEADER: .* carries something else"):
        load(slot_header=name)


def test_a_slash_at_the_end_of_the_prefix_is_dropped() -> None:
    assert load(url_prefix="/jobs/cron/").url_prefix == "/jobs/cron"


@pytest.mark.parametrize("early", [0, "0s", timedelta()])
def test_no_hit_need_be_taken_early(early: Any) -> None:
    assert load(early=early).early == timedelta()


def test_the_instance_is_the_setting_else_what_the_platform_says() -> None:
    platform = {"DYNO": "web.1", "FLY_MACHINE_ID": "e286"}

    assert load(platform, instance="blue").instance == "blue"
    assert load(platform).instance == "web.1"


def test_an_instance_is_kept_short_and_printable() -> None:
    assert load(instance="büro 1\n").instance == "b?ro?1"
    assert len(load(instance="x" * 10_000).instance) == 100


def test_the_secret_of_the_environment_is_the_fallback() -> None:
    environ = {"CRON_SECRET": GOOD}

    assert load(environ).secrets == (GOOD.encode(),)
    assert load(environ, secret="another-secret-that-wins").secrets == (
        b"another-secret-that-wins",
    )
    assert load().secrets == ()


@pytest.mark.parametrize(
    "weak",
    [
        "",
        " ",
        "\n",
        " " * 40,
        "None",
        "NULL",
        "undefined",
        "ChangeMe",
        " none \n",
        "fifteen-bytes-x",
        b"fifteen-bytes-x",
        f" {GOOD}",
        f"{GOOD} ",
        f"{GOOD}\0",
        f"first-line\n{GOOD}",
        [],
        [GOOD, ""],
        [GOOD, "short"],
        [GOOD, None],
        [GOOD, 1234567890123456],
        1234567890123456,
        {GOOD},
    ],
    ids=repr,
)
def test_a_weak_secret_is_refused_and_not_shown(weak: Any) -> None:
    with pytest.raises(ConfigError, match="CRONLOCK_SECRET") as refused:
        load(secret=weak)

    assert GOOD not in str(refused.value)


@pytest.mark.parametrize("word", ["", " \n", "None", "NULL", "undefined", "ChangeMe"])
def test_a_secret_that_was_never_set_is_called_by_its_name(word: str) -> None:
    with pytest.raises(ConfigError, match="blank or a placeholder"):
        load(secret=word)


@pytest.mark.parametrize("weak", ["", "undefined", "short"])
def test_a_weak_secret_of_the_environment_is_refused_with_a_cure_that_needs_no_app(
    weak: str,
) -> None:
    with pytest.raises(ConfigError, match=r"python3 -c .*secrets\.token_urlsafe"):
        load({"CRON_SECRET": weak})


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_a_newline_at_the_end_is_stripped_with_a_warning(
    caplog: pytest.LogCaptureFixture, end: str
) -> None:
    with caplog.at_level(logging.DEBUG):
        assert load(secret=GOOD + end).secrets == (GOOD.encode(),)

    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "newline" in record.getMessage()
    assert GOOD not in caplog.text


def test_several_secrets_are_kept_in_their_order() -> None:
    new, old = "the-new-secret-of-2026", "the-old-secret-of-2025"

    assert load(secret=[new, old]).secrets == (new.encode(), old.encode())
    assert load(secret=(new, old)).secrets == (new.encode(), old.encode())


def test_a_secret_that_is_not_ascii_is_kept_as_its_bytes() -> None:
    assert load(secret="schlüssel-für-cron").secrets == ("schlüssel-für-cron".encode(),)
    raw = b"\xe9" * 16
    in_environ = raw.decode("utf-8", "surrogateescape")
    assert load({"CRON_SECRET": in_environ}).secrets == (raw,)


def test_the_settings_do_not_show_the_secret() -> None:
    assert GOOD not in repr(load(secret=GOOD))


def test_records_are_kept_for_longer_than_any_item_waits() -> None:
    longest = (MOST_ATTEMPTS - 1) * LONGEST_WAIT
    assert longest < SHORTEST_HISTORY
    with pytest.raises(ConfigError, match="CRONLOCK_QUEUE_HISTORY must be at least 7d"):
        load(queue_history="6d")
