"""What may be registered as a task, and the queues that tasks are on."""

from __future__ import annotations

from ..mechanism import Invariant, Mechanism

FROM = "integration/test_defer_from.py"
REFUSALS = "integration/test_defer_refusals.py"
REGISTRATION = "unit/test_tasks_registration.py"
WITHOUT = "integration/test_defer_without_queue.py"
WRONG = "test_a_wrong_option_is_refused_by_name"

MECHANISMS = [
    Mechanism(
        name="queue-has-a-channel",
        keeps="No queue's name is longer than what a channel of PostgreSQL takes.",
        invariant=Invariant.NOT_SILENT,
        file="queue/tasks.py",
        source="if len(name) > LONGEST_NAME:",
        instead="if False:",
        test_file=REFUSALS,
        test="test_a_queue_that_is_too_long_with_the_namespace_is_refused",
    ),
    Mechanism(
        name="queue-of-a-namespace",
        keeps="Apps of two namespaces never work off each other's rows.",
        invariant=Invariant.ONCE,
        file="queue/tasks.py",
        source='f"{namespace or NO_NAMESPACE}.{queue}"',
        instead='f"{NO_NAMESPACE}.{queue}"',
        test_file="integration/test_defer_keys.py",
        test="test_two_namespaces_in_one_database_have_nothing_in_common",
    ),
    Mechanism(
        name="queues-of-our-own",
        keeps="No worker of ours takes rows of another app that uses Procrastinate by itself.",
        invariant=Invariant.NOT_SILENT,
        file="queue/tasks.py",
        source='name = f"{namespace or NO_NAMESPACE}.{queue}"',
        instead='name = f"{namespace}.{queue}" if namespace else queue',
        test_file=FROM,
        test="test_columns_of_any_name_may_be_set_and_asked_for",
    ),
    Mechanism(
        name="queues-fit-with-the-namespace",
        keeps="A queue whose name is too long is found at set-up, and not when it is used.",
        invariant=Invariant.NOT_SILENT,
        file="extension.py",
        source="        self.tasks.check_queues(config.namespace)\n",
        instead="",
        test_file=REGISTRATION,
        test="test_so_is_a_namespace_that_leaves_no_room_for_the_default_queue",
    ),
    Mechanism(
        name="task-options-are-known",
        keeps="An option of a task that is misspelt is refused by name.",
        invariant=Invariant.NOT_SILENT,
        file="queue/registration.py",
        source="        refuse_unknown(unknown, make_task)\n",
        instead="",
        test_file=REGISTRATION,
        test=f"{WRONG}[options19-there is no option delivry=, retries=; ]",
    ),
    Mechanism(
        name="task-is-called-at-once",
        keeps="A function whose call would do nothing yet is no task.",
        invariant=Invariant.NOT_SILENT,
        file="queue/registration.py",
        source="        refuse_deferred(function)\n",
        instead="",
        test_file=REGISTRATION,
        test="test_a_function_that_cannot_be_called_by_name_and_at_once_is_refused[later]",
    ),
    Mechanism(
        name="task-is-called-by-name",
        keeps="A function that takes positional arguments is no task.",
        invariant=Invariant.NOT_SILENT,
        file="queue/registration.py",
        source="if kinds & {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL}:",
        instead="if False:",
        test_file=REGISTRATION,
        test="test_a_function_that_cannot_be_called_by_name_and_at_once_is_refused[any_number]",
    ),
    Mechanism(
        name="task-has-a-name-of-its-own",
        keeps="No task takes another one's place.",
        invariant=Invariant.NOT_SILENT,
        file="queue/tasks.py",
        source="if known is not None and not same_place(known.function, task.function):",
        instead="if False:",
        test_file=REGISTRATION,
        test="test_a_name_is_taken_by_one_function",
    ),
    Mechanism(
        name="task-needs-the-extra",
        keeps="Without the queue's package a task is refused in one clear error.",
        invariant=Invariant.NOT_SILENT,
        file="queue/registration.py",
        source="    require_queue()\n",
        instead="",
        test_file=WITHOUT,
        test="test_a_task_cannot_be_registered",
    ),
]
