"""A mail server of a test's own, which answers as the test wants."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socket import create_server

from sample_app.sink import serve
from sample_app.smtp import MailServer


class Kept:
    """Takes each mail, and keeps it as it came."""

    def __init__(self) -> None:
        self.mails: list[bytes] = []

    async def handle_DATA(self, server: object, session: object, envelope: object) -> str:
        self.mails.append(envelope.original_content)  # type: ignore[attr-defined]
        return "250 Kept"


@contextmanager
def serving(handler: object) -> Iterator[MailServer]:
    """Run a server on a free loopback port, whose answers are `handler`'s."""
    with create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        loop = asyncio.new_event_loop()
        task = loop.create_task(serve(listener, handler))

        def run() -> None:
            try:
                loop.run_until_complete(task)
            except asyncio.CancelledError:
                loop.run_until_complete(loop.shutdown_default_executor())
            finally:
                loop.close()

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield MailServer("127.0.0.1", port)
        finally:
            loop.call_soon_threadsafe(task.cancel)
            thread.join()
