"""Registering a job for workers."""

from __future__ import annotations

from typing import Any

import pytest
from flask_sqlalchemy import SQLAlchemy

from flask_cronlock import CronLock
from flask_cronlock.exceptions import QueueMissing, RegistrationError
from flask_cronlock.queue import extra


@pytest.fixture
def cron() -> CronLock:
    return CronLock(SQLAlchemy())


@pytest.mark.parametrize("where", ["web", "", "Worker", 1, True, ["worker"]])
def test_a_job_runs_on_a_worker_or_where_it_is_hit(cron: CronLock, where: Any) -> None:
    with pytest.raises(RegistrationError, match=r"Job 'digest': .*give .worker., or leave it out"):
        cron.job("digest", on=where)(lambda: None)
    assert "digest" not in cron.jobs


def test_without_the_queues_package_it_is_refused(
    cron: CronLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extra, "queue_is_installed", lambda: False)

    with pytest.raises(QueueMissing, match=r"pip install 'Flask-CronLock\[queue\]'"):
        cron.job("digest", on="worker")(lambda: None)
    cron.job("other")(lambda: None)


def test_the_name_of_the_queues_rows_is_no_tasks(cron: CronLock) -> None:
    with pytest.raises(RegistrationError, match="runs of jobs"):
        cron.task("cronlock-run")(lambda: None)
