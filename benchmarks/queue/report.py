"""The report: ratios first, then what they are made of."""

from __future__ import annotations

from collections.abc import Sequence

from ..report import table
from ..rounds import Timing
from .app import BATCH
from .deferring import FROM, Deferred, named
from .memory import Growth
from .working import CONCURRENCY, MANY, Worked

HOW = """
Ratios are of the time for each mail, each taken within one round: the rounds' median
[lowest–highest]. Rates and times tell about one machine at one time.
"""
DEFERRING = """
Each way is a transaction, its commit included; what begins with `run.` is a job's whole run. The
statement and `run.defer_from` stamp each user as well, which the others are spared. Ways with a row
of the queue for each mail defer fewer mails, and those with a trip to the server for each mail
fewer still: a queue that fills up only makes them slower.
"""
MEMORY = """
Kilobytes by which a fresh process grew at its largest, after a run that deferred nothing.
`fetched_first` is what one should not do: the stamped users are fetched, and then deferred.
"""
WORKING = """
Each worker is a process of its own, with {concurrency} rows in hand at once, from its beginning to
its end. `flask cron worker` keeps a record of each item, so that none is done twice; Procrastinate
alone keeps none.
"""


def text(
    about: Sequence[str], command: str, deferred: Deferred, grown: Growth | None, worked: Worked
) -> str:
    """Return all of it as Markdown."""
    parts = [
        "# Slow work: what the queue costs",
        f"{', '.join(about)}. `{command}`; how it is done is in [queue/](queue/).",
        _flat(HOW),
        f"## Deferring {deferred.users:,} mails",
        _flat(DEFERRING),
        _deferred(deferred),
        "## The memory of the process that defers",
        *([_flat(MEMORY), _grown(grown)] if grown else ["Left out: only Linux tells it."]),
        f"## Working off {worked.crews[0].mails:,} mails that do nothing",
        _flat(WORKING.format(concurrency=CONCURRENCY)),
        _worked(worked),
    ]
    return "\n\n".join(parts) + "\n"


def _deferred(found: Deferred) -> str:
    timing, base = found.timing, named(FROM, BATCH)
    head = [
        f"deferring, {_rounds(timing)}",
        "/ the statement of as many a row",
        f"/ {base}",
        "mails",
        "rows of the queue",
        "microseconds a mail",
    ]
    rows = [
        [
            entry.name,
            str(timing.ratio(entry.name, entry.pure)) if entry.pure else "",
            "" if entry.name == base else str(timing.ratio(entry.name, base)),
            f"{entry.mails:,}",
            f"{entry.rows:,}",
            f"{timing.median(entry.name) * 1e6:.1f}",
        ]
        for entry in found.entries
    ]
    return table(head, rows)


def _grown(found: Growth) -> str:
    head = ["kilobytes", *(f"{users:,} users" for users in found.users)]
    rows = [[way, *(f"{each:,}" for each in grown)] for way, grown in found.kilobytes.items()]
    return table(head, rows)


def _worked(found: Worked) -> str:
    timing = found.timing
    rows = [
        [
            crew.name,
            "" if crew.name == MANY else str(timing.ratio(crew.name, MANY)),
            f"{crew.mails:,}",
            f"{1 / timing.median(crew.name):,.0f}",
        ]
        for crew in found.crews
    ]
    return table(
        [f"working off, {_rounds(timing)}", f"/ {MANY}", "mails done", "mails a second"], rows
    )


def _rounds(timing: Timing) -> str:
    return "1 round" if timing.rounds == 1 else f"{timing.rounds} rounds"


def _flat(text: str) -> str:
    return " ".join(text.split())
