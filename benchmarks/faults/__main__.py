"""Put every tool through faults drawn from the same plan, and print the report."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from sample_app.embedded import TemporaryServer, temporary
from tests.support.databases import fresh_database

from . import report, stage
from .plan import Plan, draw
from .tools import TOOLS, Entry
from .trial import Result, Trial

RESULTS = Path(__file__).parents[1] / "faults.md"
KEYS = [entry.key for entry in TOOLS]


def compare(entries: list[Entry], plan: Plan, seed: int) -> str:
    """Return the report on *entries*; who needs what is not there is named in it, and left out."""
    results: dict[Entry, Result | None] = {}
    with temporary() as server, stage.redis_server() as redis:
        versions, machine = stage.versions(server), report.machine()
        for entry in entries:
            results[entry] = None if entry.missing else _try(entry, plan, server, redis)
            result = results[entry]
            told = f"{result.seconds:.0f} s" if result else entry.missing
            print(f"{entry.name}: {told}", file=sys.stderr, flush=True)
    versions += [entry.version for entry in entries if results[entry] and entry.version]
    command = f"python -m benchmarks.faults --seed {seed} --slots {plan.slots}"
    if len(entries) < len(TOOLS):
        command += f" --tools {' '.join(entry.key for entry in entries)}"
    return report.text(results, plan, command, [*versions, *machine])


def _try(entry: Entry, plan: Plan, server: TemporaryServer, redis: str) -> Result:
    with (
        fresh_database(server) as database,
        stage.pooler_before(server) as pooler,
        tempfile.TemporaryDirectory(prefix="cronlock-faults-") as folder,
    ):
        return Trial(entry, plan, database, pooler).run(redis, Path(folder))


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--slots", type=int, default=120)
    parser.add_argument("--tools", nargs="+", choices=KEYS, default=KEYS, help="default: all")
    parser.add_argument(
        "--output", type=Path, default=RESULTS, help="default: benchmarks/faults.md"
    )
    options = parser.parse_args()
    entries = [entry for entry in TOOLS if entry.key in options.tools]
    text = compare(entries, draw(options.seed, options.slots), options.seed)
    print(text, end="")
    options.output.write_text(text, encoding="utf-8")


main()
