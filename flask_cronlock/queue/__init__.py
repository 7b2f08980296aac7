"""Slow work, handed to Procrastinate in the run's own transaction, and worked off elsewhere."""
