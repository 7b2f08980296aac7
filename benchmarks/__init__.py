"""What a run costs, against the same thing written by hand: `python -m benchmarks`."""
