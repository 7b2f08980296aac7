"""No scheduler at all: two instances with the clock inside, one of which is killed half-way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import Any

from .demo_stage import SUBSCRIBERS, WORKERS, say, start_both, with_subscribers
from .demo_watch import Watch, count
from .extensions import db
from .instance import Instance, running

EVERY = timedelta(seconds=5)
SLOTS_OF_BOTH = 2
SLOTS_OF_ONE = 2


def demonstrate(url: str, once: bool) -> int:
    """Tell the story on the empty database at `url`; return the exit status."""
    app = with_subscribers(url)
    every = f"{EVERY.seconds}s"
    settings = {"DATABASE_URL": url, "CLOCK": "1", "DIGEST_EVERY": every}
    with ExitStack() as stack:
        instances = start_both(stack, settings)
        stack.enter_context(app.app_context())
        stack.callback(db.engine.dispose)
        connection = stack.enter_context(db.engine.connect())
        connection.execution_options(isolation_level="AUTOCOMMIT")
        watch = Watch(connection, instances)
        runs = watch.runs()

        say(f"\nA slot every {every}, a clock in each of the {2 * WORKERS} workers, and no hit")
        say("  slot      run by          digests  late by")
        show(runs, SLOTS_OF_BOTH)
        victim, writer = watch.kill_in_the_middle()
        say(f"  {writer} runs the next slot, and all of {victim.name} is killed: one is left")
        show(runs, SLOTS_OF_ONE)

        status = verdict(*count())
        if not once:
            back = stack.enter_context(running(victim.name, WORKERS, settings))
            back.wait_until_ready()
            instances[instances.index(victim)] = back
            stay(instances, runs)
            status = verdict(*count())
    return status


def show(runs: Iterator[Any], slots: int | None = None) -> None:
    """Print one line for each run, until there were so many slots."""
    shown: set[datetime] = set()
    while slots is None or len(shown) < slots:
        run = next(runs)
        shown.add(run.scheduled_at)
        slot = f"{run.scheduled_at.astimezone():%H:%M:%S}"
        late = (run.started_at - run.scheduled_at) / timedelta(milliseconds=1)
        say(f"  {slot}  {run.instance:<14}  {int(run.value):>7,}  {late:>5,.0f} ms")


def verdict(runs: Mapping[datetime, int], digests: Mapping[tuple[bool, int], int]) -> int:
    """Print both counts; return 0 if they are 1 for every slot and every subscriber, else 1."""
    first = min(runs)
    slots = (max(runs) - first) // EVERY + 1
    per_slot = Counter(runs.get(first + number * EVERY, 0) for number in range(slots))
    say("\nRuns per slot")
    for number, times in sorted(per_slot.items(), reverse=True):
        say(f"  {number} each  {times:>6,} slot{'' if times == 1 else 's'}")
    say(f"Digests per user and slot: {slots} slots, {SUBSCRIBERS:,} subscribers")
    for (subscribed, number), times in sorted(digests.items(), reverse=True):
        note = "" if subscribed else "  switched the digest off"
        say(f"  {number} each  {times:>6,}{note}")
    complete = set(per_slot) == {1} and digests.get((True, 1)) == slots * SUBSCRIBERS
    exactly_once = complete and digests.keys() <= {(True, 1), (False, 0)}
    sound = "Every subscriber got one digest for every slot."
    say(f"\n{sound if exactly_once else 'NOT every count is 1.'}")
    return 0 if exactly_once else 1


def stay(instances: Sequence[Instance], runs: Iterator[Any]) -> None:
    """Show what both instances run until Ctrl-C."""
    try:
        say("\nThe killed one is back, and both go on. Look at their outbox:")
        for instance in instances:
            say(f"  {instance.url}/")
        say("Ctrl-C ends everything and leaves nothing behind.")
        show(runs)
    except KeyboardInterrupt:
        say()
