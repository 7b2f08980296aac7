"""A mail server that sends nothing on: what it gets, the inbox shows. `python -m sample_app.sink`.

It is for looking at mail on the machine where it was made; nobody else is let in.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from email import message_from_bytes, policy
from email.utils import make_msgid

import click
from aiosmtpd.smtp import SMTP, Envelope, Session
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError

from .config import settings
from .models import Mail

HOST = "127.0.0.1"
PORT = 2525
AT_ONCE = 16


class Sink:
    """Keeps each mail in the inbox of each of its recipients."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        """Answer for the mail once it is kept."""
        content = envelope.original_content or b""
        try:
            # In a thread, so that one mail that waits for the database holds up no other.
            await asyncio.to_thread(self._keep, content, envelope.rcpt_tos)
        except DBAPIError as error:
            click.echo(error, err=True)
            return "451 The inbox cannot be written"
        return "250 Kept"

    def _keep(self, content: bytes, recipients: Sequence[str]) -> None:
        with self._engine.begin() as connection:
            for recipient in recipients:
                keep(connection, recipient, content)


def keep(connection: Connection, recipient: str, content: bytes) -> None:
    """Add a mail to the inbox; one that is there under its Message-ID is counted once more."""
    message = message_from_bytes(content, policy=policy.default)
    new = insert(Mail).values(
        message_id=str(message["Message-ID"] or make_msgid(domain="sink.invalid")),
        recipient=recipient,
        subject=str(message["Subject"] or ""),
        content=content,
    )
    connection.execute(
        new.on_conflict_do_update(
            index_elements=["recipient", "message_id"], set_={"deliveries": Mail.deliveries + 1}
        )
    )


async def serve(listener: socket.socket, handler: object) -> None:
    """Take mail on `listener`, and hand it to `handler`, until cancelled."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(AT_ONCE))
    # Else an answer's second line waits some 40 ms for the client to acknowledge the first.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server = await loop.create_server(
        # Without a name of its own it asks the DNS for one, for each connection.
        lambda: SMTP(handler, hostname="localhost", enable_SMTPUTF8=True, loop=loop),
        sock=listener,
    )
    async with server:
        await server.serve_forever()


def open_port(port: int) -> socket.socket:
    return socket.create_server((HOST, port))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m sample_app.sink", description=__doc__)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--port", type=int, default=PORT, help=f"on {HOST}; by default {PORT}")
    where.add_argument("--fd", type=int, help="a listening socket that was handed over")
    chosen = parser.parse_args(arguments)
    handed = chosen.fd is not None
    try:
        listener = socket.socket(fileno=chosen.fd) if handed else open_port(chosen.port)
    except (OSError, OverflowError) as error:
        parser.error(f"cannot listen there: {error}")
    database = settings({})
    options = {**database["SQLALCHEMY_ENGINE_OPTIONS"], "pool_size": AT_ONCE}
    engine = create_engine(database["SQLALCHEMY_DATABASE_URI"], **options)
    host, port = listener.getsockname()[:2]
    click.echo(f"Mail to smtp://{host}:{port} is shown on the page /inbox. Ctrl-C ends this.")
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(listener, Sink(engine)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
