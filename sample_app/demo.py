"""Two instances, twenty simultaneous hits, one digest each; with `--clock` no hit at all."""

from __future__ import annotations

import argparse
import json
import secrets
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from types import FrameType
from typing import Any

from flask import Flask

from . import demo_clock, embedded, outbox
from .demo_stage import say, start_both, with_subscribers
from .extensions import db
from .instance import Instance, NotReady

HITS = 20
PATH = "/api/cron/daily-digest"


@dataclass(frozen=True)
class Answer:
    """What one hit was told."""

    instance: str
    status: int
    body: Mapping[str, Any]

    def __str__(self) -> str:
        match self.body:
            case {"outcome": "ran", "processed": processed}:
                slot, who = self.body.get("slot"), self.body.get("instance")
                return f"RAN      {processed:,} digests for {slot}, by {who}"
            case {"reason": "already running"}:
                holder = self.body.get("held_by")
                return "skipped  already running" + (f", held by {holder}" if holder else "")
            case {"reason": "already ran"}:
                return f"skipped  already ran at {self.body.get('ran_at')}"
        return json.dumps(self.body)


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if every subscriber got exactly one digest, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m sample_app.demo",
        description="Show a job that runs once, on a PostgreSQL of the demo's own.",
    )
    parser.add_argument("--once", action="store_true", help="end instead of keeping on running")
    parser.add_argument("--clock", action="store_true", help="no hits: a clock in each instance")
    chosen = parser.parse_args(arguments)
    tell = demo_clock.demonstrate if chosen.clock else demonstrate
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, leave)
    # A shell that starts the demo in the background has it ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with embedded.temporary() as server:
            return tell(server.url(), chosen.once)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except embedded.EmbeddedError as error:
        sys.exit(
            f"The demo runs a PostgreSQL of its own, whatever DATABASE_URL is. {error.problem}."
        )
    except NotReady as error:
        sys.exit(str(error))


def leave(number: int, frame: FrameType | None) -> None:
    """Unwind, so that everything that was started is ended; further signals change nothing."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def demonstrate(url: str, once: bool) -> int:
    """Tell the story on the empty database at `url`; return the exit status."""
    app = with_subscribers(url)
    secret = secrets.token_urlsafe(32)
    with ExitStack() as stack:
        instances = start_both(stack, {"DATABASE_URL": url, "CRON_SECRET": secret})
        say(f"\n{HITS} simultaneous hits: POST {PATH}")
        table(hit_together([instances[n % len(instances)] for n in range(HITS)], secret))
        say("\nA late duplicate")
        table([hit(instances[-1], secret)], first=HITS + 1)

        status = verdict(digests_per_user(app))
        if not once:
            stay(instances, secret)
    return status


def hit_together(targets: Sequence[Instance], secret: str) -> list[Answer]:
    """Hit all targets at the same moment; return the answers in the order of the targets."""
    start = threading.Barrier(len(targets))

    def wait_and_hit(target: Instance) -> Answer:
        start.wait()
        return hit(target, secret)

    with ThreadPoolExecutor(len(targets)) as threads:
        return list(threads.map(wait_and_hit, targets))


def hit(target: Instance, secret: str) -> Answer:
    """Do what a scheduler does."""
    status, body = target.request("POST", PATH, {"Authorization": f"Bearer {secret}"})
    return Answer(target.name, status, json.loads(body))


def digests_per_user(app: Flask) -> dict[tuple[bool, int], int]:
    """Count in the outbox how many users got how many digests."""
    with app.app_context():
        counts = outbox.per_user(db.session())
        db.session.remove()
        db.engine.dispose()
    return counts


def verdict(counts: Mapping[tuple[bool, int], int]) -> int:
    """Print the count of digests per user; return 0 if it is 1 for every subscriber, else 1."""
    say("\nDigests per user")
    for (subscribed, digests), users in sorted(counts.items(), reverse=True):
        note = "" if subscribed else "  switched the digest off"
        say(f"  {digests} each  {users:>5,} users{note}")
    exactly_once = (True, 1) in counts and counts.keys() <= {(True, 1), (False, 0)}
    say("\nEvery subscriber got one digest." if exactly_once else "\nNOT every count is 1.")
    return 0 if exactly_once else 1


def stay(instances: Sequence[Instance], secret: str) -> None:
    """Keep the instances until Ctrl-C."""
    try:
        say("\nBoth keep running. Look at their outbox, or send one more hit:")
        for instance in instances:
            say(f"  {instance.url}/")
        say(f'  curl -X POST -H "Authorization: Bearer {secret}" {instances[0].url}{PATH}')
        say("Ctrl-C ends everything and leaves nothing behind.")
        threading.Event().wait()
    except KeyboardInterrupt:
        say()


def table(answers: Sequence[Answer], first: int = 1) -> None:
    """Print one line for each answer."""
    say("  hit  to     status  answer")
    for number, answer in enumerate(answers, first):
        say(f"  {number:>3}  {answer.instance}  {answer.status:<6}  {answer}")


if __name__ == "__main__":
    sys.exit(main())
