"""From a schedule to its slots and their keys."""

from __future__ import annotations

from ..mechanism import Invariant, Mechanism

FOLDS = "unit/test_schedule_folds.py"
GAPS = "unit/test_schedule_gaps.py"
REFUSALS = "unit/test_schedule_refusals.py"
SCHEDULE = "unit/test_schedule.py"

MECHANISMS = [
    Mechanism(
        name="key-by-local-label",
        keeps="Instances whose zone data differ name a fixed-time slot alike.",
        invariant=Invariant.DATABASE_TIME,
        step=4,
        file="schedule.py",
        source='label.isoformat(timespec="minutes") if self._fields.fixed else _key(instant)',
        instead="_key(instant)",
        test_file=SCHEDULE,
        test="test_a_fixed_time_slot_is_named_by_its_local_label",
    ),
    Mechanism(
        name="key-by-instant",
        keeps="The two passes of a repeated hour are slots of their own for a wildcard.",
        invariant=Invariant.DUE,
        step=4,
        file="schedule.py",
        source='label.isoformat(timespec="minutes") if self._fields.fixed else _key(instant)',
        instead='label.isoformat(timespec="minutes")',
        test_file=FOLDS,
        test="test_every_half_hour_goes_on_through_both_passes_of_a_fold",
    ),
    Mechanism(
        name="fixed-time-once-in-a-fold",
        keeps="A daily time that the clock shows twice is one slot.",
        invariant=Invariant.ONCE,
        step=4,
        file="schedule.py",
        source="(False,) if self._fields.fixed else (False, True)",
        instead="(False, True)",
        test_file=FOLDS,
        test="test_a_daily_time_that_occurs_twice_runs_at_its_first_pass_only",
    ),
    Mechanism(
        name="both-passes-of-a-fold",
        keeps="A schedule of every so many minutes does not rest in a repeated hour.",
        invariant=Invariant.DUE,
        step=4,
        file="schedule.py",
        source="(False,) if self._fields.fixed else (False, True)",
        instead="(False,)",
        test_file=FOLDS,
        test="test_every_half_hour_goes_on_through_both_passes_of_a_fold",
    ),
    Mechanism(
        name="right-after-a-gap",
        keeps="A daily time that the clock jumps over runs right after the gap.",
        invariant=Invariant.DUE,
        step=4,
        file="zones.py",
        source="if first >= second:",
        instead="if True:",
        test_file=GAPS,
        test="test_a_daily_time_inside_a_gap_runs_once_right_after_the_gap",
    ),
    Mechanism(
        name="nothing-invented-in-a-gap",
        keeps="A schedule of every so many minutes has no slot at a time that is not.",
        invariant=Invariant.ONCE,
        step=4,
        file="schedule.py",
        source="return wall.date() == label.date() if self._fields.fixed else wall == label",
        instead="return wall.date() == label.date()",
        test_file=GAPS,
        test="test_every_half_hour_invents_nothing_in_a_gap",
    ),
    Mechanism(
        name="one-slot-for-one-instant",
        keeps="Labels that fall on one instant are one slot.",
        invariant=Invariant.ONCE,
        step=4,
        file="schedule.py",
        source="            start = self._index(bisect_right, day, instant, second_pass)\n",
        instead="            start += 1\n",
        test_file=GAPS,
        test="test_labels_that_fall_on_one_instant_are_one_slot_under_the_latest_label",
    ),
    Mechanism(
        name="zone-checked",
        keeps="A zone that is misspelt never becomes another one.",
        invariant=Invariant.NOT_SILENT,
        file="zones.py",
        source="if isinstance(name, str) and name in zones:",
        instead='if isinstance(name, str) and (name := name if name in zones else "UTC"):',
        test_file=REFUSALS,
        test="test_a_zone_that_is_not_exactly_a_known_name_is_refused_with_a_cure",
    ),
    Mechanism(
        name="naive-time-refused",
        keeps="A time without a zone is not read by the zone of some host.",
        invariant=Invariant.DATABASE_TIME,
        file="schedule.py",
        source="if instant.utcoffset() is None:",
        instead="if False:",
        test_file=REFUSALS,
        test="test_a_naive_datetime_is_refused_with_a_cure",
    ),
]
