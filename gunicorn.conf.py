"""Read by gunicorn from the directory it is started in."""

from __future__ import annotations

from typing import Any

# Two instances on one machine would take this socket, in the home directory, from each other.
control_socket_disable = True


def post_fork(server: Any, worker: Any) -> None:
    """Give each worker database connections of its own.

    With --preload the pools were made before the fork, and a connection shared by two processes
    would share its transaction and its locks. `close=False`: the parent still uses it.
    """
    if not server.cfg.preload_app:
        return
    app = server.app.wsgi()
    with app.app_context():
        for engine in app.extensions["sqlalchemy"].engines.values():
            engine.dispose(close=False)


def post_worker_init(worker: Any) -> None:
    """Start a clock in each worker if `CLOCK=1` asks for it.

    Here and not in the factory, so that no command, test or parent of workers gets one.
    """
    from sample_app.config import clock_wanted
    from sample_app.extensions import cron

    if clock_wanted():
        cron.start_clock(worker.app.wsgi())
