"""The commands that write and run an app's migrations, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from .databases import Database
from .instances import ROOT, environment


@dataclass
class Migrations:
    """An app's folder of migrations, and its database."""

    database: Database
    folder: Path
    extra: dict[str, str] = field(default_factory=dict)

    def flask(self, *words: str, code: int = 0) -> str:
        """Run a ``flask`` command and return all that it printed."""
        return self.run("flask", "--app", "tests.support.migrated_app", *words, code=code)

    def run(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=ROOT,
            env=environment(self.database, MIGRATIONS=str(self.folder), **self.extra),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        assert done.returncode == code, done.stdout
        return done.stdout

    @property
    def scripts(self) -> list[str]:
        """Return the texts of the migrations that were written."""
        return [path.read_text() for path in self.folder.glob("versions/*.py")]
