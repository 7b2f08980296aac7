"""The tools can be put through faults of one plan; the report tells what became of each."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ..support.pgbouncer import find_pgbouncer

ROOT = Path(__file__).parents[2]
TOOLS = ("cronlock", "transaction-lock", "lease", "redis")
SLOTS = 8


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report on four tools, of which one finds no server of its kind."""
    output = tmp_path_factory.mktemp("faults") / "report.md"
    environment = {
        **os.environ,
        "PGBOUNCER": find_pgbouncer(),
        "REDIS_SERVER": str(output.with_name("not-there")),
    }
    command = [sys.executable, "-m", "benchmarks.faults", "--slots", str(SLOTS), "--seed", "1"]
    done = subprocess.run(
        [*command, "--tools", *TOOLS, "--output", output],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    text = output.read_text(encoding="utf-8")
    assert done.stdout == text
    return text


def cells(report: str, tool: str) -> dict[str, str]:
    """Return the figures of one tool by the names of their columns."""
    head = re.search(r"^\| tool \|(.*)\|$", report, re.MULTILINE)
    row = re.search(rf"^\| {re.escape(tool)} \|(.*)\|$", report, re.MULTILINE)
    assert head, report
    assert row, report
    names, figures = ([cell.strip() for cell in found[1].split("|")] for found in (head, row))
    return dict(zip(names, figures, strict=True))


@pytest.mark.parametrize("tool", ["Flask-CronLock", "transaction lock alone", "row lease"])
def test_each_tool_has_a_row_of_figures(report: str, tool: str) -> None:
    found = cells(report, tool)
    assert found["slots"] == str(SLOTS)
    assert float(found.pop("longest stuck (s)")) > 0
    assert all(figure.isdecimal() for figure in found.values())
    assert int(found["faults"]) > 0


def test_nothing_is_wrong_with_flask_cronlock(report: str) -> None:
    found = cells(report, "Flask-CronLock")
    wrong = [name for name in found if name not in ("slots", "longest stuck (s)", "faults")]
    assert len(wrong) == 5
    assert {found[name] for name in wrong} == {"0"}


@pytest.mark.parametrize("tool", ["transaction lock alone", "row lease"])
def test_a_lock_without_a_memory_runs_repeated_slots_again(report: str, tool: str) -> None:
    assert int(cells(report, tool)["duplicates: repeat asked for"]) > 0


def test_a_transaction_lock_keeps_runs_apart(report: str) -> None:
    assert cells(report, "transaction lock alone")["overlaps"] == "0"


def test_what_needs_redis_is_left_out_by_name_where_there_is_none(report: str) -> None:
    assert "| redis-py's Lock: left out, redis" in report


def test_neither_a_name_nor_a_path_of_the_machine_is_in_it(report: str) -> None:
    assert str(ROOT) not in report
    about = r"^PostgreSQL \d+\S*, PgBouncer \d+.*, \d+ cores, .*\d{4}-\d\d-\d\d\."
    assert re.search(about, report, re.MULTILINE)
