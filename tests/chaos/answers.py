"""The history's words for answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RAN, ALREADY_RAN, ALREADY_RUNNING = "ran", "already ran", "already running"
DONE = (RAN, ALREADY_RAN)
"""The slot has its effect."""
ANSWERS = {*DONE, ALREADY_RUNNING, "failed", "unknown", "unavailable"}
"""All that an instance may say."""


def word_for(status: int, body: Mapping[str, Any]) -> str:
    """Return an answer in the history's words."""
    outcome: str = body.get("reason") or body.get("outcome") or "error"
    if body.get("error") == "Outcome unknown":
        return "unknown"
    if status == 503:
        return "unavailable"
    return body.get("error", "not an answer of ours") if outcome == "error" else outcome
