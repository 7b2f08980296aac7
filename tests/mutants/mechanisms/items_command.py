"""What an operator may say of items, and of which."""

from __future__ import annotations

from ..mechanism import Invariant, Mechanism

COMMAND = "integration/test_items_command.py"
UNTOUCHED = "integration/test_items_untouched.py"

MECHANISMS = [
    Mechanism(
        name="items-of-the-namespace",
        keeps="An operator of one namespace sees and changes no item of another.",
        invariant=Invariant.ONCE,
        file="queue/docket.py",
        source="return self._rows.c.namespace == self.state.config.namespace",
        instead="return self._rows.c.namespace.is_not(None)",
        test_file=COMMAND,
        test="test_another_namespace_sees_and_changes_none",
    ),
    Mechanism(
        name="only-given-up-items-are-deferred-anew",
        keeps="An item that is done, or being tried, is not deferred anew by its key.",
        invariant=Invariant.ONCE,
        file="queue/docket.py",
        source="where(these, row.state.in_(states), self._is_ours)",
        instead="where(these, self._is_ours)",
        test_file=UNTOUCHED,
        test="test_it_is_not_deferred_anew_by_its_key[done]",
    ),
    Mechanism(
        name="only-given-up-items-of-all",
        keeps="No option defers all items anew that are being tried.",
        invariant=Invariant.ONCE,
        file="queue/docket.py",
        source="[state for state in states if state in GIVEN_UP]",
        instead="list(states)",
        test_file=UNTOUCHED,
        test="test_it_is_not_among_all_that_are_deferred_anew[waiting]",
    ),
    Mechanism(
        name="wrong-retries-are-told",
        keeps="A key that cannot be deferred anew is told, and nothing else is done.",
        invariant=Invariant.NOT_SILENT,
        file="queue/docket.py",
        source="if not self._retry(this, GIVEN_UP):",
        instead="if self._retry(this, GIVEN_UP) < 0:",
        test_file=UNTOUCHED,
        test="test_it_is_not_deferred_anew_by_its_key[done]",
    ),
    Mechanism(
        name="only-open-items-are-settled",
        keeps="An item that is done is not settled over.",
        invariant=Invariant.NOT_SILENT,
        file="queue/docket.py",
        source="row.key == key, row.state.in_(open_states), self",
        instead="row.key == key, self",
        test_file=UNTOUCHED,
        test="test_what_is_done_cannot_be_settled[done]",
    ),
    Mechanism(
        name="wrong-settlements-are-told",
        keeps="A key that cannot be settled is told, and what was said with it is not done.",
        invariant=Invariant.NOT_SILENT,
        file="queue/docket.py",
        source="if not self.tx.execute(this.values(settled)).rowcount:",
        instead="if self.tx.execute(this.values(settled)).rowcount < 0:",
        test_file=COMMAND,
        test="test_with_one_key_that_is_wrong_nothing_is_changed",
    ),
    Mechanism(
        name="attempts-begin-anew",
        keeps="An item that is deferred anew has all its attempts.",
        invariant=Invariant.NOT_SILENT,
        file="queue/docket.py",
        source='"attempts": 0, ',
        instead="",
        test_file=COMMAND,
        test="test_one_that_is_retried_is_deferred_anew_with_its_own_key",
    ),
]
