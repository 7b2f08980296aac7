"""A worker of Procrastinate's own, whose one task does nothing; it ends when nothing is due.

``python -m benchmarks.queue.plain_worker CONNINFO CONCURRENCY``
"""

from __future__ import annotations

import sys

import procrastinate

from .by_hand import QUEUE, TASK

BEGAN, ENDED = "The worker began", "The worker stopped"


def main(conninfo: str, concurrency: int) -> None:
    """Work until nothing is due, and say when it begins, when it ended and what it has done."""
    done: list[int] = []
    queue = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=conninfo))

    @queue.task(name=TASK, queue=QUEUE)
    def mail(user_id: int) -> None:
        done.append(user_id)

    print(BEGAN, flush=True)
    queue.run_worker(concurrency=concurrency, wait=False, delete_jobs="successful")
    print(f"{ENDED}: {len(done)} done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
