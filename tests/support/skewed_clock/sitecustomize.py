"""Set this process's clock wrong by CLOCK_SKEW seconds; on PYTHONPATH, Python imports it first."""

from __future__ import annotations

import datetime
import os
import time

_SKEW = float(os.environ["CLOCK_SKEW"])
_true_time = time.time
_true_datetime = datetime.datetime


def _time() -> float:
    return _true_time() + _SKEW


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
