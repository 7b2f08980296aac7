"""Which slot a run is for."""

from __future__ import annotations

from ..mechanism import Invariant, Mechanism

POLICY = "unit/test_policy.py"
SLOTS = "integration/test_slots.py"

MECHANISMS = [
    Mechanism(
        name="database-clock",
        keeps="The slot is of the database's clock, whatever the host's says.",
        invariant=Invariant.DATABASE_TIME,
        step=4,
        file="transaction.py",
        source="self.clock = (self.stamp() or row.clock).astimezone(UTC)",
        instead="self.clock = datetime.now(UTC)",
        test_file="integration/test_time_frozen.py",
        test="test_frozen_python_time_changes_no_slot_and_no_stamp",
    ),
    Mechanism(
        name="clock-that-is-not-frozen",
        keeps="The slot is of the moment, and not of the transaction's start.",
        invariant=Invariant.DATABASE_TIME,
        step=4,
        file="limits.py",
        source="SELECT clock_timestamp() AS clock",
        instead="SELECT now() AS clock",
        test_file=SLOTS,
        test="test_the_slot_is_of_the_databases_clock_and_not_of_the_transactions_start",
    ),
    Mechanism(
        name="early-hit",
        keeps="A hit that comes a moment before its slot is not taken for the slot before.",
        invariant=Invariant.DUE,
        step=4,
        file="policy.py",
        source="if ahead <= min(early, schedule.interval(begun) / 2)",
        instead="if ahead <= timedelta()",
        test_file=POLICY,
        test="test_a_wish_up_to_early_before_a_slot_is_for_that_slot",
    ),
    Mechanism(
        name="early-by-half-an-interval",
        keeps="However early hits may come, each slot has its time.",
        invariant=Invariant.DUE,
        step=4,
        file="policy.py",
        source="min(early, schedule.interval(begun) / 2)",
        instead="early",
        test_file=POLICY,
        test="test_early_is_never_more_than_half_the_interval",
    ),
    Mechanism(
        name="no-slot-of-the-future",
        keeps="A slot whose time has not come is not run when it is named.",
        invariant=Invariant.DUE,
        step=4,
        file="policy.py",
        source="if slot is not None and slot.at.timestamp() > newest.at.timestamp():",
        instead="if False:",
        test_file=POLICY,
        test="test_a_time_that_is_no_slot_is_refused",
    ),
    Mechanism(
        name="off-the-grid-refused",
        keeps="A time that is no slot is not moved to one.",
        invariant=Invariant.NOT_SILENT,
        step=4,
        file="policy.py",
        source="if slot is None or named - slot.at.astimezone(UTC) > early:",
        instead="if slot is None:",
        test_file=POLICY,
        test="test_a_time_that_is_no_slot_is_refused",
    ),
    Mechanism(
        name="too-late",
        keeps="A slot beyond its lateness is not run.",
        invariant=Invariant.DUE,
        step=4,
        file="runner.py",
        source="if plan.is_too_late(run):",
        instead="if False:",
        test_file=SLOTS,
        test="test_without_a_policy_a_slot_is_over_when_the_next_begins",
    ),
    Mechanism(
        name="forced-run-without-a-slot",
        keeps="A forced run uses up no slot.",
        invariant=Invariant.DUE,
        step=6,
        file="planning.py",
        source="None if self.force else slot.key",
        instead="slot.key",
        test_file=SLOTS,
        test="test_forced_runs_use_up_no_slot_and_never_conflict",
    ),
]
