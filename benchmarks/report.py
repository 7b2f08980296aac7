"""The report: ratios first, times in small print."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .digest import PURE_SQL
from .in_process import BARE, BY_HAND, OURS
from .over_http import EMPTY
from .rounds import Timing
from .wire import Count


def text(
    about: Sequence[str],
    in_process: Sequence[Timing],
    counts: Sequence[Count],
    over_http: Sequence[Timing],
    digest: Timing,
) -> str:
    """Return all of it as Markdown."""
    return (
        "\n\n".join(
            [
                "# Results",
                f"{', '.join(about)}. How to read them: [README.md](README.md).",
                "## In one process",
                _sizes(in_process[0]),
                _ratios(in_process, [(OURS, BY_HAND), (OURS, BARE), (BY_HAND, BARE)]),
                _times(in_process),
                "## Through HTTP",
                _sizes(over_http[0]),
                _ratios(over_http, [(OURS, BY_HAND), (OURS, EMPTY), (BY_HAND, EMPTY)]),
                _times(over_http),
                "## A digest",
                _sizes(digest),
                _ratios([digest], [(OURS, PURE_SQL)]),
                _times([digest]),
                "## Over the wire, and into the WAL",
                _counts("round trips", [(count.name, count.trips) for count in counts]),
                _counts("bytes of WAL", [(count.name, count.wal) for count in counts]),
            ]
        )
        + "\n"
    )


def _sizes(timing: Timing) -> str:
    each = "one operation" if timing.batch == 1 else f"{timing.batch} operations"
    return f"{timing.rounds} rounds of {each} in each way: the ratios' median [lowest–highest]."


def _ratios(timings: Sequence[Timing], pairs: Sequence[tuple[str, str]]) -> str:
    head = ["", *(f"{way} / {base}" for way, base in pairs)]
    rows = [[t.name, *(str(t.ratio(way, base)) for way, base in pairs)] for t in timings]
    return table(head, rows)


def _times(timings: Sequence[Timing]) -> str:
    ways = list(timings[0].seconds)
    rows = [[t.name, *(f"{t.median(way) * 1000:.2f}" for way in ways)] for t in timings]
    return table(["median milliseconds", *ways], rows)


def _counts(what: str, counts: Iterable[tuple[str, Mapping[str, int]]]) -> str:
    rows = [[name, *(str(found[way]) for way in (OURS, BY_HAND, BARE))] for name, found in counts]
    return table([what, OURS, BY_HAND, BARE], rows)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown whose figures are flush right."""
    ruler = ["---", *("---:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ruler, *rows))
