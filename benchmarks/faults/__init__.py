"""The same faults upon Flask-CronLock and upon other tools: `python -m benchmarks.faults`."""
