"""The list of mechanisms does not rot: each is still in the package, and each test in the suite."""

from __future__ import annotations

import ast
import re
from collections import Counter

import pytest

from ..mutants.mechanism import ROOT, Invariant, Mechanism
from ..mutants.mechanisms import ALL

PACKAGE = ROOT / "flask_cronlock"
STEP = re.compile(r"^(\d+)\. ", re.MULTILINE)

each = pytest.mark.parametrize("mechanism", ALL, ids=lambda mechanism: mechanism.name)


@each
def test_its_source_is_once_in_its_file_and_the_rest_is_still_python(mechanism: Mechanism) -> None:
    ast.parse(mechanism.without(PACKAGE))


@each
def test_its_test_is_in_the_suite(mechanism: Mechanism) -> None:
    tree = ast.parse((ROOT / "tests" / mechanism.test_file).read_text(encoding="utf-8"))
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert mechanism.test.partition("[")[0] in names


def test_no_two_have_one_name() -> None:
    assert Counter(mechanism.name for mechanism in ALL).most_common(1)[0][1] == 1


@pytest.mark.parametrize("invariant", Invariant)
def test_each_invariant_is_kept_by_a_mechanism(invariant: Invariant) -> None:
    assert any(mechanism.invariant is invariant for mechanism in ALL)


def test_each_step_of_a_run_has_a_mechanism() -> None:
    steps = {int(step) for step in STEP.findall((ROOT / "docs/a-run.md").read_text("utf-8"))}
    assert steps == {mechanism.step for mechanism in ALL} - {None}
