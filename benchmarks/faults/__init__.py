"""Faults of one plan upon Flask-CronLock and other tools: `python -m benchmarks.faults`."""
