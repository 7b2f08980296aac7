"""What the queue costs can be measured, and the report tells what was deferred and worked off."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAILS = 1_000
"""As many as ``--quick`` defers at once."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    output = tmp_path_factory.mktemp("queue") / "report.md"
    command = [sys.executable, "-m", "benchmarks.queue", "--quick", "--output", output]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    text = output.read_text(encoding="utf-8")
    assert done.stdout == text
    return text


def cells(report: str, table: str, row: str) -> dict[str, str]:
    """Return the figures of one row by the names of their columns."""
    head = re.search(rf"^\| ({table}.*)\|$", report, re.MULTILINE)
    assert head, report
    found = re.search(rf"^\| ({re.escape(row)} .*)\|$", report[head.end() :], re.MULTILINE)
    assert found, f"no row {row!r} in {report}"
    names, figures = ([cell.strip() for cell in line[1].split("|")] for line in (head, found))
    return dict(zip(names, figures, strict=True))


@pytest.mark.parametrize(
    ("way", "mails", "rows"),
    [
        ("one SQL statement, 500 mails a row", MAILS, MAILS // 500),
        ("run.defer_from, 500 mails a row", MAILS, MAILS // 500),
        ("run.defer_many, 500 mails a row", MAILS, MAILS // 500),
        ("one SQL statement, a mail a row", MAILS // 5, MAILS // 5),
        ("run.defer_from, a mail a row", MAILS // 5, MAILS // 5),
        ("run.defer_many, a mail a row", MAILS // 5, MAILS // 5),
        ("run.defer, one by one", MAILS // 50, MAILS // 50),
        ("Procrastinate's batch_defer, 1,000 a call", MAILS // 5, MAILS // 5),
        ("Procrastinate's defer, one by one", MAILS // 50, MAILS // 50),
    ],
)
def test_each_way_defers_all_its_mails(report: str, way: str, mails: int, rows: int) -> None:
    found = cells(report, "deferring", way)
    assert found["mails"] == f"{mails:,}"
    assert found["rows of the queue"] == f"{rows:,}"


@pytest.mark.parametrize("batch", ["500 mails", "a mail"])
def test_one_statement_is_measured_against_the_same_by_hand(report: str, batch: str) -> None:
    found = cells(report, "deferring", f"run.defer_from, {batch} a row")
    check_ratio(found["/ the statement of as many a row"])


@pytest.mark.parametrize("way", ["run.defer", "Procrastinate's defer"])
def test_one_by_one_is_measured_against_one_statement(report: str, way: str) -> None:
    found = cells(report, "deferring", f"{way}, one by one")
    check_ratio(found["/ run.defer_from, 500 mails a row"])


@pytest.mark.parametrize(
    ("worker", "mails"),
    [
        ("Flask-CronLock, 500 mails a row", MAILS),
        ("Flask-CronLock, a mail a row", MAILS // 40),
        ("Procrastinate alone, a mail a row", MAILS // 40),
    ],
)
def test_each_worker_does_all_its_mails(report: str, worker: str, mails: int) -> None:
    found = cells(report, "working off", worker)
    assert found["mails done"] == f"{mails:,}"
    if mails < MAILS:
        check_ratio(found["/ Flask-CronLock, 500 mails a row"])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process's largest size")
def test_the_growth_of_each_process_is_told(report: str) -> None:
    for way in ("defer_from", "defer_many", "fetched_first"):
        found = cells(report, "kilobytes", way)
        assert all(found[f"{users} users"].isdecimal() for users in ("100", "1,000"))


def test_neither_a_name_nor_a_path_of_the_machine_is_in_it(report: str) -> None:
    assert str(ROOT) not in report
    about = r"^PostgreSQL \d+\S*, Procrastinate \d+.*, \d+ cores, .*\d{4}-\d\d-\d\d\."
    assert re.search(about, report, re.MULTILINE)


def check_ratio(cell: str) -> None:
    """Refuse what is no ratio with its spread."""
    median, low, high = map(float, re.findall(r"\d+\.\d+", cell))
    assert 0 < low <= median <= high
