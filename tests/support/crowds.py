"""Crowds of processes that run one job at the same time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

from .databases import Database
from .instances import ROOT, environment

SKEWED = Path(__file__).with_name("skewed_clock")


def race(
    database: Database,
    job: str,
    processes: int = 4,
    rounds: int = 1,
    slots: Sequence[datetime] = (),
    stagger: float = 0,
    url: str | None = None,
    mutants: str = "",
    skews: Sequence[float] = (),
) -> list[dict[str, Any]]:
    """Let *processes* run *job*, each *rounds* times or for all *slots*; return all outcomes.

    They start together, or one every *stagger* seconds. *mutants* are taken out of each; *skews*
    set their clocks wrong.
    """
    with ExitStack() as stack:
        racers = []
        for number in range(processes):
            extra = {"CRONLOCK_MUTANTS": mutants, "DYNO": f"racer.{number}"}
            if skews:
                skew = str(skews[number % len(skews)])
                extra |= {"CLOCK_SKEW": skew, "PYTHONPATH": f"{SKEWED}:{ROOT}"}
            racer = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.support.racer"),
                    *(job, str(rounds), str(number * stagger)),
                    *(slot.isoformat() for slot in slots),
                ],
                cwd=ROOT,
                env=environment(database, url, **extra),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            stack.enter_context(racer)
            stack.callback(racer.kill)
            racers.append(racer)
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdin is not None
            if racer.stdout.readline() != "ready\n":
                raise AssertionError(racer.communicate()[1])
        for racer in racers:
            racer.stdin.write("go\n")
            racer.stdin.flush()
        outcomes = []
        for racer in racers:
            output, errors = racer.communicate(timeout=120)
            assert racer.returncode == 0, errors
            outcomes += json.loads(output)
        return outcomes
