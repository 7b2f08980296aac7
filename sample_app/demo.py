"""Two instances, twenty simultaneous hits, one digest and one mail each; or `--clock`, no hit."""

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
from typing import Any, TypeAlias

from flask import Flask

from . import demo_clock, embedded, inbox, outbox
from .demo_mails import Mailing
from .demo_stage import say, start_both, start_mail, with_subscribers
from .extensions import db
from .instance import Instance
from .process import NotReady, Process

HITS = 20
PATH = "/api/cron/daily-digest"

Counts: TypeAlias = Mapping[tuple[bool, int], int]


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
    """Return 0 if every subscriber got exactly one digest and one mail, else 1."""
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
        settings = {"DATABASE_URL": url, "CRON_SECRET": secret}
        instances = start_both(stack, settings)
        mailers = start_mail(stack, settings, f"{instances[0].url}/inbox")
        say(f"\n{HITS} simultaneous hits: POST {PATH}")
        table(hit_together([instances[n % len(instances)] for n in range(HITS)], secret))
        say("\nA late duplicate")
        table([hit(instances[-1], secret)], first=HITS + 1)

        status = verdict(*see_the_mails(app, mailers))
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


def see_the_mails(app: Flask, mailers: list[Process]) -> tuple[Counts, Counts, int]:
    """Watch the mails go out; count digests and mails per user, and the mails that came again."""
    with app.app_context():
        session = db.session()
        digests = outbox.per_user(session)
        total = sum(number * users for (_, number), users in digests.items())
        with db.engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            Mailing(connection, mailers, total).show()
        mails, repeated = inbox.per_user(session), inbox.totals(session).repeated
        db.session.remove()
        db.engine.dispose()
    return digests, mails, repeated


def verdict(digests: Counts, mails: Counts, repeated: int) -> int:
    """Print the counts per user; return 0 if both are 1 for every subscriber, else 1."""
    say("\nDigests per user")
    show(digests)
    say("\nMails per user, told apart by their Message-ID")
    show(mails)
    if repeated:
        say(
            f"  {repeated} of them came twice, under one Message-ID: their sender was killed before"
        )
        say("  it was told that they had come")
    sound = once_each(digests) and once_each(mails)
    words = "Every subscriber got one digest and one mail." if sound else "NOT every count is 1."
    say(f"\n{words}")
    return 0 if sound else 1


def show(counts: Counts) -> None:
    """Print one line for each number of digests or mails that users got."""
    for (subscribed, number), users in sorted(counts.items(), reverse=True):
        note = "" if subscribed else "  switched the digest off"
        say(f"  {number} each  {users:>5,} users{note}")


def once_each(counts: Counts) -> bool:
    """Tell whether every subscriber got one, and nobody else any."""
    return (True, 1) in counts and counts.keys() <= {(True, 1), (False, 0)}


def stay(instances: Sequence[Instance], secret: str) -> None:
    """Keep the instances until Ctrl-C."""
    try:
        say("\nBoth keep running. Look at their outbox and inbox, or send one more hit:")
        for instance in instances:
            say(f"  {instance.url}/")
            say(f"  {instance.url}/inbox")
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
