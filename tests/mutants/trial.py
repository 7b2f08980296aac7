"""Run tests in a copy of the checkout, and tell what they say of it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .checkout import PACKAGE, copy_of, environment
from .mechanism import Mechanism

LONGEST, LONGEST_OF_EACH = 120, 5
"""Seconds after which tests are ended that hang without a mechanism: for all, and each more."""
FAILED = re.compile(r"^FAILED (.+?)(?: - .*)?$", re.MULTILINE)
WHERE = f"import {PACKAGE}; print({PACKAGE}.__file__)"


@dataclass(frozen=True)
class Finding:
    """What the tests say."""

    code: int | None
    """Of pytest; ``None``: they did not end."""
    seconds: float
    output: str

    @property
    def failed(self) -> str | None:
        """The first test that failed; an error in a fixture is none."""
        found = FAILED.search(self.output)
        return found[1] if found else None

    @property
    def green(self) -> bool:
        return self.code == 0 and " skipped" not in self.output.splitlines()[-1]

    @property
    def verdict(self) -> str:
        """``red``, ``survived``, or ``broken`` for a mutant that shows nothing."""
        if self.code == 1 and self.failed:
            return "red"
        return "survived" if self.code == 0 else "broken"


def run_tests(
    checkout: Path, tests: Sequence[str], more: Mapping[str, str], processes: int = 0
) -> Finding:
    """Run *tests* in *checkout*; *processes* at once, or in one."""
    how = ["-x", "-q", "-n", str(processes), "-p", "no:cacheprovider"]
    begun = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", *how, *tests],
        cwd=checkout,
        env=environment(checkout, more),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=LONGEST + LONGEST_OF_EACH * len(tests))
            code: int | None = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, code = process.communicate()[0], None
    return Finding(code, time.monotonic() - begun, output)


def try_without(mechanism: Mechanism, unchanged: Path, more: Mapping[str, str]) -> Finding:
    """Run the mechanism's test in a copy of *unchanged* that lacks the mechanism."""
    with tempfile.TemporaryDirectory(prefix="cronlock-mutant-") as folder:
        checkout = copy_of(unchanged, Path(folder).resolve(), mechanism)
        return run_tests(checkout, [mechanism.test_id], more)


def imported_from(checkout: Path) -> bool:
    """Tell whether Python finds the package in *checkout* there, and not an installed one."""
    command = [sys.executable, "-c", WHERE]
    own = environment(checkout, {})
    where = subprocess.check_output(command, cwd="/", env=own, text=True).strip()
    return Path(where).is_relative_to(checkout)
