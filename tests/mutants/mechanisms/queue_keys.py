"""The keys of items, and of what is to be done once."""

from __future__ import annotations

from ..mechanism import Invariant, Mechanism

KEYS = "integration/test_defer_keys.py"
ONCE = "integration/test_once_keys.py"
UNIT = "unit/test_tasks_keys.py"
NEVER_ONE = "test_two_values_never_have_one_key"

MECHANISMS = [
    Mechanism(
        name="key-of-the-slot",
        keeps="A slot that is run again after a failure gives its items the keys they had.",
        invariant=Invariant.ONCE,
        file="queue/origin.py",
        source="{run.slot_key or run.id}",
        instead="{run.id}",
        test_file=KEYS,
        test="test_a_slot_that_failed_and_runs_again_gives_the_same_keys",
    ),
    Mechanism(
        name="key-of-a-forced-run",
        keeps="What a forced run defers is done, although its slot's was.",
        invariant=Invariant.NOT_SILENT,
        file="queue/origin.py",
        source="{run.slot_key or run.id}",
        instead="{run.slot_key or run.slot}",
        test_file=KEYS,
        test="test_forced_runs_have_keys_of_their_own",
    ),
    Mechanism(
        name="key-of-a-renamed-job",
        keeps="A job that was renamed gives its items the keys they had.",
        invariant=Invariant.ONCE,
        file="queue/origin.py",
        source='f"{run.identity}/',
        instead='f"{run.job}/',
        test_file=KEYS,
        test="test_a_renamed_job_keeps_its_keys",
    ),
    Mechanism(
        name="key-of-a-call-elsewhere",
        keeps="Of two calls with the same arguments outside a run each is done.",
        invariant=Invariant.NOT_SILENT,
        file="queue/origin.py",
        source='f"-/{uuid4()}"',
        instead='"-/0"',
        test_file=UNIT,
        test="test_each_call_elsewhere_is_an_origin_of_its_own",
    ),
    Mechanism(
        name="key-of-a-namespace",
        keeps="Apps of two namespaces never take each other's items for done.",
        invariant=Invariant.NOT_SILENT,
        file="queue/origin.py",
        source='"/".join((self.namespace, ',
        instead='"/".join(("", ',
        test_file=UNIT,
        test="test_another_namespace_job_or_slot_has_other_keys[namespace]",
    ),
    Mechanism(
        name="key-of-the-arguments-named",
        keeps="Arguments that the task's key does not name make no other item.",
        invariant=Invariant.ONCE,
        file="queue/origin.py",
        source="if task.key else arguments",
        instead="if False else arguments",
        test_file=KEYS,
        test="test_what_key_names_makes_an_item_and_the_rest_does_not",
    ),
    Mechanism(
        name="key-of-text-and-of-a-number",
        keeps="Text that reads as a number or as JSON is another item than that.",
        invariant=Invariant.NOT_SILENT,
        file="queue/origin.py",
        source=" and not NOT_PLAIN.fullmatch(only)",
        instead="",
        test_file=UNIT,
        test=NEVER_ONE,
    ),
    Mechanism(
        name="key-of-a-truth",
        keeps="True is another item than the text of it.",
        invariant=Invariant.NOT_SILENT,
        file="queue/origin.py",
        source="if type(only) is int:",
        instead="if isinstance(only, int):",
        test_file=UNIT,
        test=NEVER_ONE,
    ),
    Mechanism(
        name="key-fits-its-index",
        keeps="Long arguments make a key of a length that PostgreSQL indexes.",
        invariant=Invariant.NOT_SILENT,
        file="queue/origin.py",
        source="if len(text) > LONGEST_PART:",
        instead="if False:",
        test_file=KEYS,
        test="test_a_key_fits_its_column_whatever_the_arguments_are",
    ),
    Mechanism(
        name="once-keys-are-no-items-keys",
        keeps="A key of the app's own is never taken for an item's.",
        invariant=Invariant.NOT_SILENT,
        file="queue/once.py",
        source="/-/once/",
        instead="/once/",
        test_file=ONCE,
        test="test_a_key_is_no_item_and_an_item_is_no_key",
    ),
    Mechanism(
        name="once-in-a-namespace",
        keeps="Apps of two namespaces never take each other's keys for seen.",
        invariant=Invariant.NOT_SILENT,
        file="queue/once.py",
        source='f"{config.namespace}/-/once',
        instead='f"/-/once',
        test_file=ONCE,
        test="test_namespaces_do_not_share_keys",
    ),
    Mechanism(
        name="once-in-the-sessions-transaction",
        keeps="A key is seen only if what is done for it is kept.",
        invariant=Invariant.ONCE,
        file="queue/once.py",
        source="    connection = sure_connection(session, state.db.engine, OnceError)\n",
        instead=(
            "    connection = state.db.engine.connect().execution_options("
            'isolation_level="AUTOCOMMIT")\n'
        ),
        test_file=ONCE,
        test="test_what_is_rolled_back_was_not_seen",
    ),
    Mechanism(
        name="once-keys-can-be-kept",
        keeps="A key that PostgreSQL does not keep is refused before the server sees it.",
        invariant=Invariant.NOT_SILENT,
        file="queue/once.py",
        source=" or UNKEPT.search(key)",
        instead="",
        test_file=ONCE,
        test="test_a_key_that_cannot_be_kept_is_refused[a\\x00]",
    ),
]
