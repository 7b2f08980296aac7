"""Take out each mechanism in turn, and see the tests turn red."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import click

from sample_app.embedded import temporary

from .checkout import fresh_copy
from .mechanism import Invariant, Mechanism
from .mechanisms import ALL
from .nursery import Nursery
from .shared_server import environment_for
from .trial import Finding, imported_from, run_all, try_without

LAST_LINES = 25


@click.command()
@click.option("--jobs", default=5, show_default=True, help="How many are tried at once.")
@click.option("--only", multiple=True, metavar="NAME", help="Try this one; may be repeated.")
@click.option("--list", "listing", is_flag=True, help="Say what each mechanism keeps, and end.")
def main(jobs: int, only: Sequence[str], listing: bool) -> None:
    """Show that the suite turns red without each of the safety mechanisms."""
    chosen = [mechanism for mechanism in ALL if not only or mechanism.name in only]
    if len(chosen) < len(set(only)):
        raise click.UsageError("`--list` shows the names")
    if listing:
        show(chosen)
        return
    begun = time.monotonic()
    found = try_all(chosen, jobs)
    seconds = time.monotonic() - begun
    odd = [(mechanism, finding) for mechanism, finding in found if finding.verdict != "red"]
    for mechanism, finding in odd:
        click.echo(f"\n{finding.verdict}: {mechanism.name}: {mechanism.keeps}")
        click.echo("\n".join(finding.output.splitlines()[-LAST_LINES:]))
    click.echo(f"\n{len(found) - len(odd)} of {len(found)} mutants turned red in {seconds:.0f} s")
    if odd:
        raise SystemExit(1)


def show(mechanisms: Iterable[Mechanism]) -> None:
    """Print what *mechanisms* keep, by invariant."""
    mechanisms = list(mechanisms)
    for invariant in Invariant:
        click.echo(f"{invariant.word}: {invariant}")
        for mechanism in mechanisms:
            if mechanism.invariant is invariant:
                click.echo(f"  {mechanism.name} ({mechanism.file}): {mechanism.keeps}")


def try_all(mechanisms: Sequence[Mechanism], jobs: int) -> list[tuple[Mechanism, Finding]]:
    """Try *mechanisms*, printing a line for each, after their tests were green with all of them."""
    width = max(len(mechanism.name) for mechanism in mechanisms)
    found = []
    # A server for each that is tried at once: some tests look at all of a server's locks.
    places: SimpleQueue[tuple[Any, Nursery]] = SimpleQueue()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="cronlock-mutants-"))
        unchanged = fresh_copy(Path(folder).resolve())
        if not imported_from(unchanged):
            raise click.ClickException("an installed flask_cronlock is imported, and not the copy")
        tests = sorted({mechanism.test_id for mechanism in mechanisms})
        before = run_all(unchanged, tests, jobs)
        if not before.green:
            raise click.ClickException(f"not all is well without mutants:\n{before.output}")
        click.echo(f"{len(tests)} tests are green with all mechanisms in {before.seconds:.0f} s\n")
        for _ in range(jobs):
            server, nursery = stack.enter_context(temporary()), stack.enter_context(Nursery())
            places.put((server, nursery))

        def attempt(mechanism: Mechanism) -> Finding:
            server, nursery = place = places.get()
            try:
                return try_without(mechanism, unchanged, environment_for(server), nursery)
            finally:
                places.put(place)

        with ThreadPoolExecutor(jobs) as pool:
            tried = pool.map(attempt, mechanisms)
            for mechanism, finding in zip(mechanisms, tried, strict=True):
                click.echo(line(mechanism, finding, width))
                found.append((mechanism, finding))
    return found


def line(mechanism: Mechanism, finding: Finding, width: int) -> str:
    """Return the row of a mutant: verdict, time, mechanism, invariant, file and test."""
    by = (finding.failed or mechanism.test_id).partition("::")[2]
    about = f"{mechanism.name:{width}}  {mechanism.invariant.word:14}  {mechanism.file:20}"
    return f"{finding.verdict:8}  {finding.seconds:4.1f} s  {about}  {by}"


main()
