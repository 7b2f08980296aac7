"""Chaos: every fault at once upon real instances, and a checker that judges what is left."""
