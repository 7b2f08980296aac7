"""The benchmarks can be run, and report what they promise to."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    output = tmp_path_factory.mktemp("benchmarks") / "report.md"
    command = [sys.executable, "-m", "benchmarks", "--quick", "--output", output]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    text = output.read_text(encoding="utf-8")
    assert done.stdout == text
    return text


def cells(report: str, section: str, row: str) -> list[str]:
    """Return the figures of the row of that name in the section's tables, the first that fits."""
    part = report.partition(f"## {section}\n")[2].partition("\n## ")[0]
    found = re.search(rf"^\| {re.escape(row)} \|(.*)\|$", part, re.MULTILINE)
    assert found, f"no row {row!r} in {part!r}"
    return [cell.strip() for cell in found[1].split("|")]


@pytest.mark.parametrize(
    ("section", "row", "ratios"),
    [
        ("In one process", "skipped, already ran", 3),
        ("In one process", "skipped, running elsewhere", 3),
        ("In one process", "won, an empty job", 3),
        ("In one process", "with_lock, empty work", 3),
        ("Through HTTP", "skipped, already ran", 3),
        ("Through HTTP", "won, an empty job", 3),
        ("A digest", "digest of 1,000 users", 1),
    ],
)
def test_each_case_is_reported_as_ratios_with_their_spread(
    report: str, section: str, row: str, ratios: int
) -> None:
    found = cells(report, section, row)
    assert len(found) == ratios
    for cell in found:
        median, low, high = map(float, re.findall(r"\d+\.\d+", cell))
        assert 0 < low <= median <= high


@pytest.mark.parametrize(
    ("row", "trips"),
    [
        ("skipped, already ran", 4),
        ("skipped, running elsewhere", 5),
        ("won, an empty job", 6),
        ("with_lock, empty work", 5),
    ],
)
def test_a_run_takes_no_round_trip_more_than_its_steps(report: str, row: str, trips: int) -> None:
    assert cells(report, "Over the wire, and into the WAL", row)[0] == str(trips)


def test_a_skipped_run_writes_nothing_to_the_wal_and_a_won_one_does(report: str) -> None:
    written = report.partition("| bytes of WAL |")[2]
    for row in ("skipped, already ran", "skipped, running elsewhere", "with_lock, empty work"):
        assert f"| {row} | 0 | 0 | 0 |" in written
    won = re.search(r"\| won, an empty job \| (\d+) \| (\d+) \| (\d+) \|", written)
    assert won
    assert all(int(figure) for figure in won.groups())


def test_neither_a_name_nor_a_path_of_the_machine_is_in_it(report: str) -> None:
    assert str(ROOT) not in report
    assert re.search(
        r"^PostgreSQL \d+\S*, Python 3\.\d+\S*, \d+ cores, \d{4}-\d\d-\d\d\.", report, re.M
    )
