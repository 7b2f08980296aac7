"""The time a run may take, held by the server's own limits.

On PostgreSQL 17 and later ``transaction_timeout`` ends the whole transaction. Before, a limit holds
for one statement or one idle time only, so what is left is set anew as the run goes on: the lock is
then free after at most twice the timeout.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from sqlalchemy import text

from .exceptions import JobTimeout

LOCK_WAIT = timedelta(seconds=2)
"""How long a claim may wait for another one of the same slot."""
SHORT_TIMEOUT = timedelta(seconds=10)
"""How long our own looks and records may take."""
SETTLE_WAIT = timedelta(seconds=2)
"""How long the server is asked about a COMMIT whose answer was lost."""
REARM_AFTER = 0.5
"""Seconds after which the limits of PostgreSQL 14 to 16 are set anew."""
NAME_ROOM = 29
"""What is left of the 63 bytes of ``application_name`` for the instance and pid, at the longest
timeout."""

SERVER = """
concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()),
          extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time()))
"""
"""What no other server says of itself, nor this one once it has crashed."""
# set_config(…, true) is SET LOCAL: behind a pooler the next client of the backend sees none of it.
# An armed transaction_timeout is not armed anew by another value, hence '0' first.
ARM = text(f"""
SELECT clock_timestamp() AS clock, now() AS began, pg_backend_pid() AS pid, {SERVER} AS server,
       pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean AS read_only,
       current_setting('lock_timeout') AS lock_timeout,
       current_setting('transaction_timeout', true) IS NOT NULL AS whole,
       set_config('datestyle', 'ISO', true),
       set_config('lock_timeout', :lock_timeout, true),
       set_config('statement_timeout', :timeout, true),
       set_config('idle_in_transaction_session_timeout', :timeout, true),
       CASE WHEN current_setting('transaction_timeout', true) IS NOT NULL
            THEN set_config('transaction_timeout', '0', true) END,
       CASE WHEN current_setting('transaction_timeout', true) IS NOT NULL
            THEN set_config('transaction_timeout', :timeout, true) END,
       CASE WHEN version() LIKE '%linux%'
            THEN set_config('client_connection_check_interval', '1s', true) END,
       set_config('application_name',
                  'cronlock ' || floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
                  || '+' || CAST(:timeout AS text) || ' ' || CAST(:instance AS text), true)
""")

LIMIT_WAIT = text("SELECT set_config('lock_timeout', :lock_timeout, true)")
REARM = """
SELECT set_config('statement_timeout', %(left)s, true),
       set_config('idle_in_transaction_session_timeout', %(left)s, true)
"""


def milliseconds(duration: timedelta) -> str:
    """Return *duration* as PostgreSQL's limits take it; never 0, which means no limit.

    It is rounded up, so that no limit is over before the deadline.
    """
    return str(max(1, -(-duration // timedelta(milliseconds=1))))


class Deadline:
    """The end of a run's time: counted from before the server's own limits were set."""

    def __init__(self, timeout: timedelta) -> None:
        self.timeout = timeout
        self._start = self._rearmed = time.monotonic()

    @property
    def elapsed(self) -> timedelta:
        """What is gone of it."""
        return timedelta(seconds=time.monotonic() - self._start)

    @property
    def remaining(self) -> timedelta:
        """What is left, not below zero."""
        return max(timedelta(), self.timeout - self.elapsed)

    @property
    def passed(self) -> bool:
        """Tell whether nothing is left."""
        return not self.remaining

    def due_for_rearming(self) -> bool:
        """Tell, at most once in :data:`REARM_AFTER` seconds, that the limits are to be set anew."""
        now = time.monotonic()
        if now - self._rearmed < REARM_AFTER:
            return False
        self._rearmed = now
        return True


def hold_deadline(driver: psycopg.Connection[Any], deadline: Deadline) -> None:
    """Refuse a statement after the deadline, and now and then limit what is left anew."""
    if driver.info.transaction_status != TransactionStatus.INTRANS:
        return
    if deadline.passed:
        raise JobTimeout
    if deadline.due_for_rearming():
        driver.execute(REARM, {"left": milliseconds(deadline.remaining)}, prepare=False)
