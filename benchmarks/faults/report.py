"""The report: what was done, the table, and why."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime

from ..report import table
from .hit import INTERVAL, JOBS, LIMIT
from .plan import FREEZE, KINDS, WORKERS, Plan
from .stage import BACKENDS
from .tools import Entry
from .trial import RETRY_AFTER, Result

HEAD = [
    "tool",
    "slots",
    "duplicates: repeat asked for",
    "duplicates: none asked for",
    "losses",
    "overlaps",
    "contradictions",
    "longest stuck (s)",
    "faults",
]
COLUMNS = """
- **duplicates**: slots with more than one committed effect; first those that were asked for once
  more after their end, then those that were not. APScheduler is not asked, so all are of its own;
- **losses**: slots without a committed effect at the end, although they were asked for again and
  again;
- **overlaps**: pairs of runs of one job that both had power in the database at one moment;
- **contradictions**: answers that the database does not bear out: "ran" without an effect, "failed"
  with one. "—" where nobody gets an answer;
- **longest stuck**: from a slot's first hit to the end of its first run that took effect. The
  time until somebody asks again, and until a killed worker is up again, is in it, for every tool
  alike: on a machine with other work these say little.
"""


def text(entries: Mapping[Entry, Result | None], plan: Plan, command: str, about: list[str]) -> str:
    """Return all of it as Markdown; a tool without a result was left out."""
    return (
        "\n\n".join(
            [
                "# Faults of one plan, upon other tools",
                f"{', '.join(about)}. `{command}`; how it is done is in [faults/](faults/).",
                _course(plan),
                table(HEAD, [_row(entry, result, plan) for entry, result in entries.items()]),
                COLUMNS.strip(),
                "What each does:",
                "\n".join(f"- **{entry.name}**: {entry.does}." for entry in entries),
                "## Why",
                *(f"**{entry.name}.** {entry.why}" for entry, result in entries.items() if result),
            ]
        )
        + "\n"
    )


def machine() -> list[str]:
    """Return what the figures depend on; others' work on it makes the waits longer."""
    return [
        f"Python {platform.python_version()}",
        f"{os.cpu_count()} cores, load at the beginning {os.getloadavg()[0]:.1f}",
        f"{datetime.now(UTC):%Y-%m-%d}",
    ]


def _course(plan: Plan) -> str:
    kinds = Counter(action.kind for action in plan.actions)
    faults = ", ".join(f"{kinds[kind]} × {KINDS[kind]}" for kind in KINDS if kinds[kind])
    return (
        f"{WORKERS} worker processes with eight threads each, {plan.slots} slots of {JOBS} jobs, "
        f"one every {INTERVAL} s, behind PgBouncer in transaction mode with {BACKENDS} backends. "
        "Each slot is asked of all workers within a few hundredths of a second, "
        f"{len(plan.repeated)} of them once more after their end; one that has no effect after "
        f"{RETRY_AFTER:.0f} s is asked for again, and so on. The body writes a row and takes some "
        f"0.2 s. Meanwhile: {faults}; where it can be, a worker that is in a body, or its backend; "
        "the last worker that is up is left alone. "
        f"A frozen one goes on after {FREEZE[0]} to {FREEZE[1]} s. Where a tool has a limit for a "
        f"run, it is {LIMIT:.0f} s. Hits, repeats and faults come from one plan, drawn from the "
        "seed; a fault for which no worker is left is not made. PostgreSQL and Redis themselves "
        "are left alone."
    )


def _row(entry: Entry, result: Result | None, plan: Plan) -> list[str]:
    if result is None:
        return [f"{entry.name}: left out, {entry.missing}", *[""] * (len(HEAD) - 1)]
    verdict = result.verdict
    return [
        entry.name,
        str(plan.slots),
        "—" if entry.keeps_time else str(len(verdict.duplicates) - result.unasked),
        str(result.unasked),
        str(len(verdict.losses)),
        str(len(verdict.overlaps)),
        "—" if entry.keeps_time else str(result.false_answers),
        f"{verdict.longest.seconds:.1f}",
        str(result.faults),
    ]
