"""A running PostgreSQL for a trial: a pytest plugin puts it in the place of the suite's own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sample_app.embedded.account import Account
from sample_app.embedded.address import Address

VARIABLE = "MUTANTS_SERVER"


class SharedServer:
    """A running server of somebody else's, as far as tests use one that they do not stop."""

    def __init__(self, address: Address) -> None:
        self.url, self.conninfo = address.url, address.conninfo
        self.host = self.socket_folder = address.host
        self.port, self.user = address.port, address.user
        self.run_as = Account.choose()


def environment_for(server: Any) -> dict[str, str]:
    """Return what lets the tests of another process share *server*."""
    return {VARIABLE: json.dumps(server.address), "PYTEST_PLUGINS": __name__}


@contextmanager
def shared() -> Iterator[SharedServer]:
    yield SharedServer(Address(*json.loads(os.environ[VARIABLE])))


def pytest_configure() -> None:
    # Only there: what tests that stop their server import by themselves stays as it is.
    from tests import conftest

    conftest.temporary = shared  # type: ignore[assignment]
