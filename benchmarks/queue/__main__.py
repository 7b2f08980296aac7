"""Measure what deferring and working off cost, and print the report."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from ..server import durable, fresh_database
from . import deferring, memory, report, working

RESULTS = Path(__file__).parents[1] / "queue.md"
MILLION = 1_000_000


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    rounds: int = 6
    mails: int = 100_000
    memory: Sequence[int] = (1_000, 10_000, 100_000)

    @property
    def workers(self) -> int:
        """How often each worker is measured: it takes long, and what it is compared to longer."""
        return max(self.rounds // 2, 1)


QUICK = Sizes(rounds=1, mails=1_000, memory=(100, 1_000))


def measure(sizes: Sizes, command: str) -> str:
    """Return the report, from a PostgreSQL of our own that keeps what it committed."""
    load = os.getloadavg()[0]
    with durable() as server:
        with fresh_database(server) as database:
            deferred = deferring.measure(database, sizes.mails, sizes.rounds)
        with fresh_database(server) as database:
            grown = memory.measure(database, sizes.memory)
        with fresh_database(server) as database:
            worked = working.measure(database, sizes.mails, sizes.workers)
        about = [
            f"PostgreSQL {server.version}",
            f"Procrastinate {version('procrastinate')}",
            f"Python {platform.python_version()}",
            f"{os.cpu_count()} cores, load at the beginning {load:.1f}",
            f"{datetime.now(UTC):%Y-%m-%d}",
        ]
    return report.text(about, command, deferred, grown, worked)


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.queue", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it works")
    parser.add_argument("--rounds", type=int, help="how often each way is measured; default: 6")
    parser.add_argument("--million", action="store_true", help="memory with a million users, too")
    parser.add_argument(
        "--output", type=Path, help="where the report goes; default: queue.md, with --quick none"
    )
    options = parser.parse_args()
    sizes, command = QUICK if options.quick else Sizes(), ["python -m benchmarks.queue"]
    if options.quick:
        command.append("--quick")
    if options.rounds:
        sizes = replace(sizes, rounds=options.rounds)
        command.append(f"--rounds {options.rounds}")
    if options.million:
        sizes = replace(sizes, memory=(*sizes.memory, MILLION))
        command.append("--million")
    text = measure(sizes, " ".join(command))
    print(text, end="")
    if output := options.output or (None if options.quick else RESULTS):
        output.write_text(text, encoding="utf-8")


main()
