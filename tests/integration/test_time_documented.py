"""What docs/testing.md shows is run as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from ..support.databases import Database

ROOT = Path(__file__).parents[2]
APP = re.compile(r"```python\n(from flask import Flask\n.*?def create_app\(.*?)```", re.DOTALL)
BLOCK = re.compile(r"```python\n# (\w+\.py)\n(.*?)```", re.DOTALL)


def test_the_examples_for_an_apps_own_tests_pass(database: Database, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    (app,) = APP.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    files = {"shop.py": app, **dict(BLOCK.findall(page))}
    assert list(files) == ["shop.py", "conftest.py", "test_digest.py"]
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n", encoding="utf-8")

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**os.environ, "TEST_DATABASE_URL": database.url},
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
