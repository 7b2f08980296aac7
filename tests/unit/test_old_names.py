"""The names that a job had are its own, and nobody else's."""

from __future__ import annotations

import pytest
from flask_sqlalchemy import SQLAlchemy

from flask_cronlock import CronLock
from flask_cronlock.exceptions import RegistrationError


def test_a_job_is_not_called_the_former_self_of_one_that_is_there() -> None:
    cron = CronLock(SQLAlchemy())
    cron.job("digest", every="1d")(lambda: "the digest's")

    with pytest.raises(RegistrationError, match="'digest' is <function"):
        cron.job("report", every="1d", previous_names=["digest"])(lambda: "the report's")

    assert [job.name for job in cron.jobs] == ["digest"]
    assert cron.jobs.get("digest").function() == "the digest's"
