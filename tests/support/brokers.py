"""The apps of docs/celery-and-rq.md, as they stand there: their files, commands and processes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .databases import Database
from .logged import Process, logged
from .processes import wait_until
from .redis_server import RedisServer

PAGE = Path(__file__).parents[2] / "docs" / "celery-and-rq.md"
SECTION = re.compile(r"^## (\w+)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"```python\n# (\w+\.py)\n(.*?)```", re.DOTALL)
COMMANDS = re.compile(r"```\n(.*?)```", re.DOTALL)
USERS = 3


@dataclass(frozen=True)
class Shop:
    """An app whose tables are made, with some users, in a folder of its own."""

    broker: str
    folder: Path
    database: Database
    redis: RedisServer

    def __post_init__(self) -> None:
        page = PAGE.read_text(encoding="utf-8")
        for name, content in [*FILE.findall(page)[:1], *FILE.findall(self._section)]:
            (self.folder / name).write_text(content, encoding="utf-8")
        self._flask("shell", text="db.create_all()")
        self.database.query(
            'INSERT INTO "user" (points) SELECT 0 FROM generate_series(1, %s)', USERS
        )

    @property
    def _section(self) -> str:
        return dict(SECTION.findall(PAGE.read_text(encoding="utf-8")))[self.broker]

    @property
    def commands(self) -> list[str]:
        """The lines that start the workers and the relay."""
        return COMMANDS.findall(FILE.sub("", self._section))[0].splitlines()

    def run(self, job: str) -> dict[str, Any]:
        """Run a job by the command line, and return its answer."""
        return dict(json.loads(self._flask("cron", "run", job, "--json")))

    def _flask(self, *words: str, text: str = "") -> str:
        done = subprocess.run(
            [sys.executable, "-m", "flask", "--app", "tasks", *words],
            cwd=self.folder,
            env=self._environment,
            input=text,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    @contextmanager
    def process(self, line: str) -> Iterator[Process]:
        """Run a command line until the end of the block, and then it and all its children."""
        log = self.folder / f"{line.split()[0]}.log"
        command = ["/bin/sh", "-c", f"exec {line}"]
        with logged(command, log, cwd=self.folder, env=self._environment) as process:
            yield process

    @property
    def _environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        return {
            **os.environ,
            "PATH": path,
            "BROKER_URL": self.redis.url,
            "FLASK_SQLALCHEMY_DATABASE_URI": self.database.url,
        }

    @property
    def outbox(self) -> set[str]:
        return {str(row[0]) for row in self.database.query("SELECT id FROM outbox")}

    @property
    def points(self) -> list[int]:
        return [row[0] for row in self.database.query('SELECT points FROM "user" ORDER BY id')]

    def sent(self) -> list[str]:
        """Return the ids of the messages that no worker has taken."""
        from redis import Redis

        with Redis.from_url(self.redis.url) as redis:
            if self.broker == "RQ":
                return [bytes(name).decode() for name in redis.lrange("rq:queue:points", 0, -1)]
            return [json.loads(raw)["headers"]["id"] for raw in redis.lrange("celery", 0, -1)]

    def in_hand(self) -> int:
        """Return how many messages the workers have."""
        from redis import Redis

        with Redis.from_url(self.redis.url) as redis:
            if self.broker == "RQ":
                return int(redis.zcard("rq:wip:points"))
            return int(redis.hlen("unacked"))

    def work_off(self) -> None:
        """Run workers until no message is left, and let them end."""
        with self.process(self.commands[0]) as workers:
            wait_until(lambda: not (self.sent() or self.in_hand()), 60)
            workers.end()
        assert not self.sent(), workers.said()
