"""What a clock of many jobs costs while none is due, and how soon it comes to a slot."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from .in_process import OURS
from .report import table
from .server import Database

PEER = "APScheduler"
ROOT = Path(__file__).parents[1]
COMMANDS = {
    OURS: ["flask", "--app", "benchmarks.clock_app", "cron", "clock"],
    PEER: ["benchmarks.clock_peer"],
}
STARTED = {OURS: "The clock began", PEER: "The scheduler began"}
SETTLE = 5
"""Seconds, and slots of one second, after a clock's start that are not counted."""
LATE = """
SELECT extract(epoch FROM started_at - scheduled_at) FROM cronlock_run
WHERE job = 'each-second' ORDER BY scheduled_at
"""


@dataclass(frozen=True)
class Clocks:
    """What was measured, by way."""

    jobs: int
    seconds: float
    """For how long the idle clocks were watched."""
    load: Mapping[str, float]
    """The share of one core that an idle clock's process took."""
    late: Mapping[str, Sequence[float]]
    """Seconds from the time of each slot to its run's beginning."""


def measure(database: Database, jobs: int, seconds: float, slots: int) -> Clocks:
    """Watch a clock of *jobs* for some *seconds*, and then for some *slots* of one more job."""
    ways = [OURS, PEER] if importlib.util.find_spec("apscheduler") else [OURS]
    return Clocks(
        jobs,
        seconds,
        {way: _load(way, database, jobs, seconds) for way in ways},
        {way: _late(way, database, jobs, slots) for way in ways},
    )


def section(found: Clocks) -> str:
    """Return the part of the report."""
    load = [f"{share:.3%}" for share in found.load.values()]
    late = [[1000 * seconds for seconds in each] for each in found.late.values()]
    slots = len(next(iter(found.late.values())))
    return "\n\n".join(
        [
            "## A clock of many jobs",
            f"{found.jobs:,} daily jobs, of which none is due for {found.seconds:.0f} s; and then "
            f"{slots} slots of one more job, each second: from a slot's time to its run.",
            table(
                ["", *found.load],
                [
                    ["of a core, idle", *load],
                    ["milliseconds late, median", *(f"{median(each):.1f}" for each in late)],
                    ["milliseconds late, most", *(f"{max(each):.1f}" for each in late)],
                ],
            ),
        ]
    )


def _load(way: str, database: Database, jobs: int, seconds: float) -> float:
    with _clock(way, database, jobs) as (process, _):
        time.sleep(SETTLE)
        before, began = _cpu_seconds(process.pid), time.monotonic()
        time.sleep(seconds)
        return (_cpu_seconds(process.pid) - before) / (time.monotonic() - began)


def _late(way: str, database: Database, jobs: int, slots: int) -> list[float]:
    with _clock(way, database, jobs, BENCHMARK_EACH_SECOND="1") as (process, log):
        for _ in range(slots + 30):
            time.sleep(1)
            if len(found := _seconds_late(way, database, log)) >= SETTLE + slots:
                return found[-slots:]
            _check(process, log)
    raise RuntimeError(f"{way} ran {len(found)} slots:\n{log.read_text()}")


def _seconds_late(way: str, database: Database, log: Path) -> list[float]:
    if way == PEER:
        told = log.read_text().splitlines()
        return [float(line.removeprefix("late ")) for line in told if line.startswith("late ")]
    with database.connect() as connection:
        return [float(row[0]) for row in connection.execute(LATE)]


@contextmanager
def _clock(
    way: str, database: Database, jobs: int, **extra: str
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Run a clock in a process of its own, which has begun by the start of the block."""
    settings = {"DATABASE_URL": database.url, "BENCHMARK_JOBS": str(jobs), **extra}
    with tempfile.TemporaryDirectory(prefix="cronlock-benchmark-") as folder:
        log = Path(folder) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", *COMMANDS[way]],
                cwd=ROOT,
                env={**os.environ, **settings},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        with process:
            try:
                while STARTED[way] not in log.read_text():
                    _check(process, log)
                    time.sleep(0.05)
                yield process, log
            finally:
                process.terminate()


def _check(process: subprocess.Popen[bytes], log: Path) -> None:
    if process.poll() is not None:
        raise RuntimeError(f"the clock ended:\n{log.read_text()}")


def _cpu_seconds(pid: int) -> float:
    """Return the processor time that the threads of a process have taken."""
    threads = list(Path(f"/proc/{pid}/task").glob("*/schedstat"))
    if threads:
        return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9
    command = ["ps", "-o", "cputime=", "-p", str(pid)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    minutes, seconds = text.strip().split(":")[-2:]
    return 60 * int(minutes) + float(seconds)
