"""Work in a forked child."""

from __future__ import annotations

import gc
import os
import signal
import traceback
from collections.abc import Callable

PATIENCE = 60
"""Seconds after which a child that hangs is ended: one that shares a socket would, for ever."""


def forked(work: Callable[[], object]) -> Callable[[], None]:
    """Do *work* in a child; return what waits for the child and checks that it went well."""
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE)
        code = 1
        try:
            work()
            gc.collect()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def check() -> None:
        assert exit_code(child) == 0, "see the child's traceback"

    return check


def exit_code(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
