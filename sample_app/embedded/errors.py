"""What goes wrong with the embedded server, with the cure that always works."""

from __future__ import annotations


class EmbeddedError(RuntimeError):
    """No PostgreSQL could be started; set DATABASE_URL to use a server of your own."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"{problem}; or set DATABASE_URL to a PostgreSQL server of your own")
