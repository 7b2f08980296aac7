"""Run tests in a copy of the checkout, and tell what they say of it."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .checkout import PACKAGE, copy_without, environment
from .mechanism import Mechanism
from .nursery import Nursery

HOW = ("-q", "-p", "no:cacheprovider")
LONGEST = 120
"""Seconds after which a test is ended that hangs without a mechanism."""
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


def run_all(checkout: Path, tests: Sequence[str], processes: int) -> Finding:
    """Run *tests* in *checkout*, in several processes."""
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *HOW, "-n", str(processes), *tests],
        cwd=checkout,
        env=environment(checkout, {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    return Finding(done.returncode, time.monotonic() - begun, done.stdout)


def try_without(
    mechanism: Mechanism, unchanged: Path, more: Mapping[str, str], nursery: Nursery
) -> Finding:
    """Run the mechanism's test in a copy of *unchanged* that lacks the mechanism."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cronlock-mutant-") as folder:
        checkout = copy_without(mechanism, unchanged, Path(folder).resolve())
        how = [*HOW, "-x", "-n", "0", "-p", "no:hypothesispytest", mechanism.test_id]
        code, output = nursery.run(checkout, environment(checkout, more), how, LONGEST)
    return Finding(code, time.monotonic() - begun, output)


def imported_from(checkout: Path) -> bool:
    """Tell whether Python finds the package in *checkout* there, and not an installed one."""
    command = [sys.executable, "-c", WHERE]
    own = environment(checkout, {})
    where = subprocess.check_output(command, cwd="/", env=own, text=True).strip()
    return Path(where).is_relative_to(checkout)
