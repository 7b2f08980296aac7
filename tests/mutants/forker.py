"""A process that has imported what the tests need of other packages, and forks one that runs them.

These imports take longer than most of the tests. It is a program, which imports nothing of this
project: each child has another copy of that.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any

# Not pytest's plugins: it rewrites their assertions as it imports them.
FOREIGN = (
    "blinker",
    "cronsim",
    "flask.cli",
    "flask.testing",
    "flask_sqlalchemy",
    "psycopg",
    "pytest",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.orm",
    "zoneinfo",
)


def main() -> int:
    """Fork a child for each line, and answer with its pid and then with its exit status."""
    for name in FOREIGN:
        importlib.import_module(name)
    for line in sys.stdin:
        if (pid := os.fork()) == 0:
            return run(**json.loads(line))
        tell(pid)
        tell(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    return 0


def tell(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def run(checkout: str, environ: dict[str, str], arguments: list[str], output: str) -> Any:
    """Run pytest in *checkout*, as in a process of its own that writes to *output*."""
    import pytest

    os.setsid()
    os.chdir(checkout)
    os.environ.clear()
    os.environ.update(environ)
    sys.path[0] = checkout
    written, nothing = os.open(output, os.O_WRONLY | os.O_APPEND), os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (written, 1), (written, 2)):
        os.dup2(source, target)
    return pytest.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
