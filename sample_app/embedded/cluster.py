"""One data folder, its server, and the locks that keep the server alive."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from . import supervisor as script
from .account import Account
from .binaries import Binaries
from .errors import EmbeddedError
from .supervisor import Postmaster, listening, try_lock

PATIENCE = 60.0
# One open file per data folder. A forked child shares it: it counts as a user until it has died.
_held: dict[tuple[int, int], int] = {}


@dataclass(frozen=True)
class Cluster:
    """A PostgreSQL cluster in a folder of its own."""

    folder: Path
    binaries: Binaries
    account: Account
    settings: Mapping[str, str] = field(default_factory=dict)
    temporary: bool = False

    @property
    def data(self) -> Path:
        """Return PostgreSQL's own data folder."""
        return self.folder / "data"

    def hold(self) -> None:
        """Count this process as a user until it dies, or until `release`."""
        fd = self.account.open(self.folder / "users")
        held = _held.setdefault(_identity(fd), fd)
        if held != fd:
            os.close(fd)
        # Waits while a supervisor that found no user is stopping the server.
        fcntl.flock(held, fcntl.LOCK_SH)

    def release(self) -> None:
        """End the use by this process and its children; return when the server is gone."""
        users = self.account.open(self.folder / "users")
        supervisor = self.account.open(self.folder / "supervisor")
        held = _held.pop(_identity(users))
        fcntl.flock(held, fcntl.LOCK_UN)
        fcntl.flock(supervisor, fcntl.LOCK_EX)
        for fd in (users, held, supervisor):
            os.close(fd)

    def serve(self) -> Postmaster:
        """Return the running server; whichever process comes first starts the supervisor."""
        launched = False
        lock = self.account.open(self.folder / "supervisor")
        try:
            deadline = time.monotonic() + PATIENCE
            while time.monotonic() < deadline:
                if not try_lock(lock):
                    if server := listening(self.data):
                        return server
                elif launched:
                    break
                else:
                    self._launch(lock)
                    launched = True
                    # The supervisor inherited this open file and holds the lock with it.
                    os.close(lock)
                    lock = self.account.open(self.folder / "supervisor")
                time.sleep(0.02)
        finally:
            os.close(lock)
        raise EmbeddedError(f"PostgreSQL does not start ({self.complaint()})")

    def _launch(self, lock: int) -> None:
        order = {
            "base": str(self.folder),
            "bin": str(self.binaries.for_account(self.account, self.folder)),
            "uid": self.account.uid,
            "gid": self.account.gid,
            "settings": self._all_settings(),
            "temporary": self.temporary,
        }
        result = subprocess.run(
            [sys.executable, "-I", "-S", script.__file__, json.dumps(order)],
            env={"LC_ALL": "C", "TZ": "UTC", "PATH": os.defpath, "TMPDIR": tempfile.gettempdir()},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            pass_fds=[lock],
            start_new_session=True,
        )
        if result.returncode:
            text = result.stderr.decode(errors="replace").strip().splitlines()[-1]
            raise EmbeddedError(f"PostgreSQL does not start ({text})")

    def _all_settings(self) -> dict[str, str]:
        settings = {"listen_addresses": "", "port": "5432"}
        if self.binaries.major >= 18:
            settings["io_method"] = "sync"
        return settings | dict(self.settings)

    def complaint(self) -> str:
        """Return the last words of the server's log."""
        try:
            lines = (self.folder / "log").read_text(errors="replace").strip().splitlines()
        except OSError as error:
            return str(error)
        fatal = [line for line in lines if "FATAL" in line or "error:" in line]
        return (fatal or lines or ["no message"])[-1] + f", see {self.folder / 'log'}"


def _identity(fd: int) -> tuple[int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino
