"""The package with one safety mechanism taken out at a time, and the test that notices each.

``python -m tests.mutants`` tries them all; ``--list`` says what each keeps.
"""
