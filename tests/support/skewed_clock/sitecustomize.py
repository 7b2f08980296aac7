"""Set this process's clock wrong by CLOCK_SKEW seconds; on PYTHONPATH, Python imports it first.

CLOCK_SKEW may be the path of a file that says how many: the clock steps when the file changes.
"""

from __future__ import annotations

import datetime
import os
import time
from pathlib import Path

_SKEW = os.environ["CLOCK_SKEW"]
_true_time = time.time
_true_datetime = datetime.datetime


def _time() -> float:
    return _true_time() + float(Path(_SKEW).read_text() if _SKEW.startswith("/") else _SKEW)


class _Datetime(_true_datetime):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
        return cls.fromtimestamp(_time(), tz)

    @classmethod
    def utcnow(cls) -> datetime.datetime:
        return cls.now(datetime.UTC).replace(tzinfo=None)


time.time = _time
time.time_ns = lambda: int(_time() * 1e9)
datetime.datetime = _Datetime  # type: ignore[misc]
