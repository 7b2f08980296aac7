"""Own one PostgreSQL server for as long as somebody uses it.

Run as a script, by path, with the standard library only: it must start fast, and as root it must
still work after it has dropped to an account that cannot read the virtual environment.

Three lock files say who is alive; a PID never does, because PIDs are reused:

    users       held shared by every process that uses the server
    supervisor  held by the supervisor
    server      held by every process of the PostgreSQL server
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

TICK = 0.05
# The kernel's limit for the whole socket path is 107 bytes on Linux and 103 on macOS.
LONGEST_SOCKET_FOLDER = 85
STOPS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT, "kill": signal.SIGKILL}
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


class Postmaster(NamedTuple):
    """Where a running server listens."""

    pid: int
    port: int
    sockets: str


def try_lock(fd: int) -> bool:
    """Take the exclusive lock on an open file if nobody holds it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def listening(data: Path) -> Postmaster | None:
    """Return the server of a data folder if it accepts connections now."""
    try:
        lines = (data / "postmaster.pid").read_text("utf-8", "surrogateescape").splitlines()
        if len(lines) < 8 or lines[7].strip() != "ready":
            return None
        found = Postmaster(int(lines[0]), int(lines[3]), lines[4])
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(5)
            probe.connect(f"{found.sockets}/.s.PGSQL.{found.port}")
    except (FileNotFoundError, ConnectionRefusedError, BlockingIOError, TimeoutError):
        return None
    return found


def make_socket_folder(base: Path) -> Path:
    """Make the private, short folder of the socket: the same one at every start of this server.

    A running application so finds a restarted server again. Where another user has taken the
    name, it is a random one.
    """
    home = base.stat()
    name = f"cronlock-{home.st_dev:x}-{home.st_ino:x}"
    for parent in (tempfile.gettempdir(), "/tmp"):
        folder = Path(parent, name)
        # To libpq a comma ends the name of a host, and nothing quotes it.
        if len(os.fsencode(folder)) > LONGEST_SOCKET_FOLDER or "," in str(folder):
            continue
        try:
            folder.mkdir(0o700, exist_ok=True)
        except OSError:
            continue
        if is_private(folder):
            for left_over in folder.iterdir():
                left_over.unlink()
            return folder
    return Path(tempfile.mkdtemp(prefix="cronlock-", dir="/tmp"))


def is_private(folder: Path) -> bool:
    """Tell whether this is a real folder of ours that nobody else can enter."""
    found = folder.lstat()
    return found.st_uid == os.geteuid() and found.st_mode == stat.S_IFDIR | 0o700


class Supervisor:
    """Start the server, restart it after a crash, stop it when its last user has died."""

    def __init__(self, base: Path, bin: Path, settings: dict[str, str], temporary: bool) -> None:
        self.base, self.bin = base, bin
        self.settings = settings
        self.temporary = temporary
        self.data = base / "data"
        self.users = os.open(base / "users", os.O_RDWR)
        self.sockets: Path | None = None
        self.server: subprocess.Popen[bytes] | None = None
        self.started = 0.0
        self.failures = 0
        self.told_to_end = False

    def run(self) -> None:
        """Tend the server until nobody uses it, then leave nothing but the data behind."""
        try:
            while not (self.told_to_end or try_lock(self.users)):
                self.tend()
                time.sleep(TICK)
        finally:
            self.stop(signal.SIGQUIT if self.temporary else signal.SIGINT)
            if self.sockets is not None:
                shutil.rmtree(self.sockets, ignore_errors=True)
        if self.temporary:
            shutil.rmtree(self.base, ignore_errors=True)

    def end(self, *_: object) -> None:
        """Follow a signal to end although there are users."""
        self.told_to_end = True

    def tend(self) -> None:
        """Bring the server one step closer to what is wanted."""
        stops = [signum for mode, signum in STOPS.items() if (self.base / f"stop-{mode}").exists()]
        if stops:
            self.stop(stops[0])
        elif self.server is None:
            self.start()
        elif self.server.poll() is not None:
            self.note_crash()

    def note_crash(self) -> None:
        """Let the server be started again, unless it never comes up."""
        self.server = None
        lasted = time.monotonic() - self.started > 1
        self.failures = 0 if lasted else self.failures + 1
        if self.failures == 3:
            raise SystemExit("PostgreSQL ended three times while starting")

    def start(self) -> None:
        """Start the server, unless processes of an earlier one are still there."""
        lock = os.open(self.base / "server", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if not try_lock(lock):
                self.end_stray()
                return
            # Every process of the server inherits this lock. Having it proves that none is left,
            # so the pid file is stale, whatever process bears that number by now.
            if not self.data.exists():
                self.make_cluster(lock)
            (self.data / "postmaster.pid").unlink(missing_ok=True)
            self.sockets = make_socket_folder(self.base)
            self.server = self.spawn(self.command(), lock)
            self.started = time.monotonic()
        finally:
            os.close(lock)

    def end_stray(self) -> None:
        """Stop a server whose supervisor was killed where the kernel did not stop it for us."""
        stray = listening(self.data)
        if stray is not None:
            os.kill(stray.pid, signal.SIGINT)

    def make_cluster(self, lock: int) -> None:
        """Run initdb under another name, so that a half-made cluster is never taken for one."""
        unfinished = self.base / "data.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        command = [str(self.bin / "initdb"), "-D", str(unfinished), "--username=postgres"]
        command += ["--auth-local=trust", "--auth-host=scram-sha-256"]
        command += ["--locale=C", "--encoding=UTF8", "--no-instructions"]
        command += ["--no-sync"] if self.temporary else []
        if (self.base / "password").exists():
            command += [f"--pwfile={self.base / 'password'}"]
        if self.spawn(command, lock).wait() != 0:
            raise SystemExit("initdb failed")
        unfinished.rename(self.data)

    def command(self) -> list[str]:
        """Return the server's command line: a list, so that no path needs a shell's quoting."""
        quoted = str(self.sockets).replace('"', '""')
        settings = self.settings | {"unix_socket_directories": f'"{quoted}"'}
        options = [item for pair in settings.items() for item in ("-c", "=".join(pair))]
        return [str(self.bin / "postgres"), "-D", str(self.data), *options]

    def spawn(self, command: list[str], lock: int) -> subprocess.Popen[bytes]:
        """Start a program that inherits the server lock and dies with this process."""
        parent = os.getpid()

        def die_with_parent() -> None:
            # Tied to the thread that forks: this process must stay single-threaded.
            if LIBC is not None:
                LIBC.prctl(PR_SET_PDEATHSIG, int(signal.SIGQUIT), 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)

        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, pass_fds=[lock], preexec_fn=die_with_parent
        )

    def stop(self, signum: signal.Signals) -> None:
        """Stop the server; one that does not follow is stopped harder."""
        if self.server is None:
            return
        for step, patience in ((signum, 30), (signal.SIGQUIT, 10), (signal.SIGKILL, 10)):
            self.server.send_signal(step)
            try:
                self.server.wait(patience)
            except subprocess.TimeoutExpired:
                continue
            self.server = None
            return


def become(uid: int, gid: int) -> None:
    """Drop from root to the server's account for good."""
    if os.geteuid() == uid:
        return
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


def leave_starter(log: Path) -> None:
    """Go on in the background, in nobody's terminal and as nobody's child."""
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    os.chdir("/")
    if os.fork():
        os._exit(0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)


def main(order: dict[str, Any]) -> None:
    """Supervise as ordered by the starter, whose `supervisor` lock this process inherits."""
    become(order["uid"], order["gid"])
    os.umask(0o077)
    base = Path(order["base"])
    leave_starter(base / "log")
    supervisor = Supervisor(base, Path(order["bin"]), order["settings"], order["temporary"])
    signal.signal(signal.SIGTERM, supervisor.end)
    supervisor.run()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
