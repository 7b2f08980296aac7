"""What must hold after every order of the steps of some runs."""

from __future__ import annotations

from collections import Counter

from flask_cronlock import Failed, Outcome, Ran, Skipped

from .interleavings import NEWEST, OLDER, Play, key_of


def check(played: Play) -> None:
    assert told(played) == verdicts(played), played
    at_most_one_ran_for_a_slot(played)
    somebody_ran_unless_one_failed(played)
    what_is_kept_is_what_was_told(played)
    bodies_with_a_common_key_never_overlap(played)


def told(played: Play) -> dict[str, str]:
    return {name: _word(outcome) for name, outcome in played.outcomes.items()}


def _word(outcome: Outcome) -> str:
    match outcome:
        case Ran(_):
            return "ran"
        case Skipped(reason):
            return reason.value
        case Failed(error):
            return f"failed: {error}"


def those(played: Play, kind: type[Outcome]) -> list[str]:
    return [name for name, outcome in played.outcomes.items() if isinstance(outcome, kind)]


def at_most_one_ran_for_a_slot(played: Play) -> None:
    slots = Counter(played.wishes[name].claims for name in those(played, Ran))
    assert all(count == 1 for slot, count in slots.items() if slot is not None), played


def somebody_ran_unless_one_failed(played: Play) -> None:
    assert those(played, Ran) or those(played, Failed), played


def what_is_kept_is_what_was_told(played: Play) -> None:
    """The effects and done rows of those that ran, the attempts of those that failed, what was
    missed, and no lock."""
    notes, runs, attempts, locks = played.left
    ran, failed = those(played, Ran), those(played, Failed)
    ids = {name: str(outcome.run_id) for name, outcome in played.outcomes.items()}
    assert sorted(notes or []) == ran, played
    assert sorted((key, state) for _, key, state in runs or [] if key) == slots_kept(played), played
    done = Counter((run, key) for run, key, state in runs or [] if state == "done")
    assert done == Counter((ids[name], played.wishes[name].claims) for name in ran), played
    assert Counter(attempts) == Counter(ids[name] for name in failed), played
    assert locks == 0, played


def slots_kept(played: Play) -> list[tuple[str, str]]:
    """Return the slots that must have a row, and its state: what ran, and what was missed by it."""
    ran = {played.wishes[name].claims for name in those(played, Ran)} - {None}
    older, newest = key_of(OLDER), key_of(NEWEST)
    was_missed = played.known and newest in ran and older not in ran
    missed = [(older, "missed")] if was_missed else []
    return sorted([*((slot, "done") for slot in ran if slot), *missed])


def bodies_with_a_common_key_never_overlap(played: Play) -> None:
    at_work: list[str] = []
    for name, event in played.bodies:
        if event == "end":
            at_work.remove(name)
            continue
        keys = played.wishes[name].keys
        assert not any(keys & played.wishes[other].keys for other in at_work), played
        at_work.append(name)


def verdicts(played: Play) -> dict[str, str]:
    """Return what each run has to tell, by the order of the steps alone."""
    found: dict[str, str] = {}
    holders: dict[str, set[str]] = {}
    done: set[str | None] = set()
    tries = "lock" if played.stage.split else "try"
    for runner, step in played.stage.taken:
        name, wish = runner.name, played.wishes[runner.name]
        if step in ("COMMIT", "ROLLBACK"):
            holders.pop(name, None)
        if name in found:
            continue
        if step == "COMMIT":
            found[name] = "ran"
            done.add(wish.claims)
        elif step == "ROLLBACK":
            found[name] = "failed: as asked"
        elif step in ("try", "claim") and wish.claims in done - {None}:
            found[name] = "already ran"
        elif step == tries and any(wish.keys & keys for keys in holders.values()):
            found[name] = "already running"
        elif step == tries:
            holders[name] = wish.keys
    return found
