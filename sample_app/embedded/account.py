"""The operating system's account the server runs as; PostgreSQL refuses to run as root."""

from __future__ import annotations

import os
import pwd
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from .errors import EmbeddedError


class Account(NamedTuple):
    """One account; `options` are the arguments with which `subprocess` starts a program as it."""

    name: str
    uid: int
    gid: int

    @classmethod
    def choose(cls, base: Path | None = None) -> Account:
        """Return our own account; for root the owner of `base`, else `postgres`, else `nobody`."""
        if os.geteuid() != 0:
            return cls(str(os.geteuid()), os.geteuid(), os.getegid())
        owner = base.stat().st_uid if base and base.exists() else 0
        if owner:
            entries = [entry for entry in pwd.getpwall() if entry.pw_uid == owner]
        else:
            entries = [entry for entry in pwd.getpwall() if entry.pw_name in ("postgres", "nobody")]
            entries.sort(key=lambda entry: entry.pw_name, reverse=True)
        if not entries:
            raise EmbeddedError("PostgreSQL cannot run as root: add an account `postgres`")
        return cls(entries[0].pw_name, entries[0].pw_uid, entries[0].pw_gid)

    @property
    def ours(self) -> bool:
        """Tell whether this is the account we run as."""
        return self.uid == os.geteuid()

    @property
    def options(self) -> dict[str, Any]:
        """Return `user`, `group` and `extra_groups` for `subprocess`; nothing for ourselves."""
        if self.ours:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def reaches(self, path: Path, right: str = "x") -> bool:
        """Tell whether the account may enter this folder, or run this program; `w`: write it."""
        # The shell's own `test`: the account may not be let into the folders of our $PATH.
        command = ["/bin/sh", "-c", 'test "$1" "$2"', "sh", f"-{right}", str(path)]
        return subprocess.run(command, cwd="/", **self.options).returncode == 0

    def make_folder(self, folder: Path) -> None:
        """Make a private folder that belongs to the account; refuse one of somebody else's."""
        if not folder.exists():
            # Renamed into place, so that nobody meets it while it still belongs to root.
            fresh = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
            self.give(fresh)
            try:
                fresh.rename(folder)
            except OSError:
                fresh.rmdir()
        if folder.is_symlink() or folder.stat().st_uid != self.uid:
            raise EmbeddedError(f"{folder} does not belong to {self.name}: remove it")

    def open(self, path: Path) -> int:
        """Open a file of the account's for locking, made if need be."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        if os.fstat(fd).st_uid != self.uid:
            os.fchown(fd, self.uid, self.gid)
        return fd

    def give(self, path: Path) -> None:
        """Make the account the owner."""
        if not self.ours:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)
