"""Where the data of the embedded server lives."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from .account import Account

PRODUCT = "flask-cronlock"


def data_folder(base: Path | None, account: Account, major: int) -> Path:
    """Return the folder of this account and major version, made if need be.

    It lies in `base`, by default the user's state folder; in the temp folder where the account
    cannot reach that. Nothing outside is changed to make it reachable.
    """
    name = f"pg{major}-{account.uid}"
    base = base or _state_folder(account)
    if base is None:
        folder = _shared_temp() / f"{PRODUCT}-{name}"
    elif _usable(base.absolute(), account):
        folder = base.resolve() / name
    else:
        digest = hashlib.sha256(os.fsencode(base.resolve())).hexdigest()[:12]
        folder = _shared_temp() / f"{PRODUCT}-{name}-{digest}"
    account.make_folder(folder)
    return folder


def _usable(base: Path, account: Account) -> bool:
    if account.ours:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        return True
    if not base.exists() and account.reaches(base.parent):
        account.make_folder(base)
    return account.reaches(base)


def _state_folder(account: Account) -> Path | None:
    if not account.ours:
        return None
    home = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state")
    try:
        folder = home.expanduser() / PRODUCT
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None


def _shared_temp() -> Path:
    # Not $TMPDIR, which may be root's own; unlike /tmp it survives a reboot.
    lasting = Path("/var/tmp")
    return lasting if os.access(lasting, os.W_OK) else Path(tempfile.gettempdir())
