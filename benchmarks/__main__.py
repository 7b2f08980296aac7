"""Measure everything, and print the report."""

from __future__ import annotations

import argparse
import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from . import clock, digest, in_process, over_http, report, wire
from .server import durable, fresh_database

RESULTS = Path(__file__).with_name("RESULTS.md")


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rounds: int = 30
    batch: int = 20
    users: int = 100_000
    jobs: int = 1_000
    idle: float = 60
    slots: int = 20


QUICK = Sizes(rounds=3, batch=3, users=1_000, jobs=20, idle=1, slots=2)


def measure(sizes: Sizes) -> str:
    """Return the report, from a PostgreSQL of our own that keeps what it committed."""
    how = sizes.rounds, sizes.batch
    with durable() as server:
        with fresh_database(server) as database, in_process.cases(database) as (cases, bare):
            counts = [wire.count(case, database, bare, sizes.batch) for case in cases]
            timings = [case.time(*how) for case in cases]
        with fresh_database(server) as database, over_http.cases(database) as cases:
            http_timings = [case.time(*how) for case in cases]
        with fresh_database(server) as database:
            digest_timing = digest.time(database, sizes.users, sizes.rounds)
        with fresh_database(server) as database:
            clocks = clock.measure(database, sizes.jobs, sizes.idle, sizes.slots)
        about = [
            f"PostgreSQL {server.version}",
            f"Python {platform.python_version()}",
            f"{os.cpu_count()} cores",
            f"{datetime.now(UTC):%Y-%m-%d}",
        ]
    text = report.text(about, timings, counts, http_timings, digest_timing)
    return f"{text}\n{clock.section(clocks)}\n"


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it works")
    parser.add_argument(
        "--output", type=Path, help="where the report goes; default: RESULTS.md, with --quick none"
    )
    options = parser.parse_args()
    text = measure(QUICK if options.quick else Sizes())
    print(text, end="")
    if output := options.output or (None if options.quick else RESULTS):
        output.write_text(text, encoding="utf-8")


main()
