"""Functions that tests judge are also called with other inputs: what is right on the tests by chance is refuted."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from eval_pipeline.core.model import Case
from eval_pipeline.sandbox.returned.outcomes import SnippetRan
from eval_pipeline.tracks.capabilities import Seen
from eval_pipeline_plugins.data_sets.pandas_code.pandaseval import read_pandaseval
from eval_pipeline_plugins.tracks.pandas_code.cases.source import read_tables
from eval_pipeline_plugins.tracks.pandas_code.robust import other_inputs
from eval_pipeline_plugins.tracks.pandas_code.robust.other_inputs import checked_function, wrong_input
from eval_pipeline_plugins.tracks.pandas_code.running import evidence as evidence_of
from eval_pipeline_plugins.tracks.pandas_code.running.evidence import VARIANTS, of_kind
from eval_pipeline_plugins.tracks.pandas_code.running.runner import sandbox
from eval_pipeline_plugins.tracks.pandas_code.track import TRACK
from eval_pipeline_plugins.tracks.pandas_code.variants.inside.inputs import (
    check_on_other_inputs,
    form,
    given_calls,
    is_same,
    other_calls,
)
from eval_pipeline_plugins.tracks.pandas_code.variants.mutants import Known, mutants_of
from eval_pipeline_tests.outside import PANDAS, needs
from eval_pipeline_tests.tracks.card_lines import card_lines
from eval_pipeline_tests.tracks.pandas_code.helpers import answer, attempt, needs_sandbox, read, scores, unmeasured
from eval_pipeline_tests.tracks.pandas_code.rewrites import program_rewrites

PANDASEVAL = PANDAS / "pandaseval" / "PandasEval_sample.jsonl"
SHARE_REFUTED, REWRITES = 0.95, 20
OTHER_DATA = ("pandaseval_100: the factor 1 were 10", "pandaseval_100: the factor 2 were 20")
"""Mutants that alter the data that a program is about; the tests take the data from the program."""
MEAN = "import pandas as pd\n\ndef middle(df, name):\n    return df[name].mean()"
TESTS = """\
def check(candidate):
    assert candidate(pd.DataFrame({"A": [1, 2, 3]}), "A") == 2.0
    assert candidate(pd.DataFrame({"B": [1, 5, 3]}), "B") == 3.0

check(middle)"""


def _case(folder: Path, code: str = MEAN, tests: str = TESTS) -> Case:
    turn = {"question": "What is the mean?", "code": code, "tests": tests}
    return read({"id": "c", "tables": [], "turns": [turn]}, read_tables(folder, {}))


@needs_sandbox
def test_a_function_that_is_right_on_its_tests_by_chance_is_refuted(tmp_path: Path) -> None:
    case = _case(tmp_path)
    tried = attempt(case, answer(MEAN.replace("mean", "median")))
    with unmeasured():
        evidence = TRACK.gather(case, case.turns[0], tried)
    found = of_kind(evidence, VARIANTS)
    assert found is not None
    told = found.details["counterexample"]
    assert told["tables"] == {"input": "A\n1\n4\n9\n, A"}  # the squares, which are no more as far from each other
    assert (float(told["expected"]), float(told["returned"])) == (pytest.approx(14 / 3), 4.0)
    values = TRACK.values(case, case.turns[0], [tried], evidence)
    shown = card_lines(TRACK.cards(Seen(case, case.turns[0], [tried], evidence)))
    assert shown["Counterexample"] == ["(The code is wrong on an input that the tests do not have:)"]
    assert shown["Counterexample: Input"] == ["A", "1", "4", "9", ", A"]
    assert shown["Counterexample: Returned"] == ["4.0"]
    assert (values["result_verdict"], values["varies"], values["variants_right"]) == ("match", True, 0)


@needs_sandbox
def test_another_way_to_write_it_is_right_and_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = _case(tmp_path)
    other = "def middle(df, name):\n    return sum(df[name]) / len(df)"
    assert scores(case, answer(other))["robust_correct"] is True
    monkeypatch.setattr(other_inputs, "sandbox", lambda layer: pytest.fail("it was run again"))
    assert wrong_input(case.turns[0].gold, other) == {}


@needs_sandbox
@pytest.mark.parametrize("said", ["LookupError('none')", "ValueError('[]')", "ValueError('{}')", "ValueError('3')"])
def test_code_cannot_say_itself_that_it_is_right_or_that_there_is_nothing_to_check(said: str, tmp_path: Path) -> None:
    """It may fail at one run and not at another, e.g. by the clock."""
    gold = _case(tmp_path).turns[0].gold
    found = wrong_input(gold, f"{MEAN}\nraise {said}")
    assert found == {"kind": "", "input": "", "expected": "", "returned": said.split("'")[1]}


@needs_sandbox
def test_a_function_without_other_inputs_is_not_checked_on_any(tmp_path: Path) -> None:
    code = "def double(number):\n    return 2 * number"
    tests = "def check(candidate):\n    assert candidate(2) == 4\n\ncheck(double)"
    assert wrong_input(_case(tmp_path, code, tests).turns[0].gold, f"{code} + 0") is None


@pytest.mark.parametrize(
    "tests",
    ["assert middle(pd.DataFrame({'A': [1]}), 'A') == 1", TESTS.replace("check(middle)", "check(pd.DataFrame)")],
)
def test_tests_of_another_form_have_no_other_inputs(tests: str, tmp_path: Path) -> None:
    gold = _case(tmp_path, tests=tests).turns[0].gold
    assert checked_function(gold) is None
    assert wrong_input(gold, MEAN) is None


def test_inputs_are_changed_in_every_way_and_not_for_the_function() -> None:
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]})

    def tests(tested: Any) -> None:
        tested(frame, "a", factor=2)
        tested(frame, "a", factor=2)

    calls = given_calls(tests, lambda df, name, factor: factor)
    assert len(calls) == 1
    found = dict(other_calls(calls))
    assert list(found) == ["other scale", "other values", "other order", "duplicates", "fewer rows", "one row"]
    assert found["other scale"][0][0]["a"].tolist() == [1, 4, 9]
    assert found["other order"][0][0]["b"].tolist() == ["z", "y", "x"]
    assert [len(found[name][0][0]) for name in ("duplicates", "fewer rows", "one row")] == [5, 1, 1]
    assert all((given[1], named) == ("a", {"factor": 2}) for given, named in found.values())
    assert frame["a"].tolist() == [1, 2, 3]


def test_where_the_reference_function_fails_nothing_is_asked() -> None:
    calls = [((pd.DataFrame({"a": [1, 2, 3]}),), {})]

    def only_three(df: pd.DataFrame) -> int:
        assert len(df) == 3
        return int(df["a"].sum())

    check_on_other_inputs(calls, only_three, lambda df: int(df["a"].sum()))
    with pytest.raises(AssertionError, match="other scale"):
        check_on_other_inputs(calls, only_three, lambda df: 6)
    with pytest.raises(LookupError):
        check_on_other_inputs([((1,), {})], abs, abs)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (pd.DataFrame({"a": [1, 2], "b": [3.0, None]}), pd.DataFrame({"b": [None, 3], "a": [2, 1]}), True),
        (pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1, 1]}), False),
        (pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"c": [1, 2]}), False),
        (pd.Series([1, 2], index=["x", "y"]), pd.Series([2, 1], index=["y", "x"]), True),
        (pd.Series([1, 2], index=["x", "y"]), pd.Series([1, 2], index=["y", "x"]), False),
        ([1, 2.0], (1.0 + 1e-12, 2), True),
        ([1, 2], [2, 1], False),
        ({"a": {1, 2}}, {"a": {2, 1}}, True),
        (True, 1, True),
        ("1", 1, False),
    ],
)
def test_results_are_compared_without_order_of_rows(one: object, other: object, same: bool) -> None:
    assert is_same(form(one), form(other)) is same


def _mutants(entries: list[dict[str, Any]], folder: Path, *, functions: bool) -> tuple[int, list[str]]:
    """How many mutants of functions, or of the other programs, are refuted, and those that are not."""
    refuted, kept = 0, []
    for entry in entries:
        case = read(entry, read_tables(folder, {}))
        gold = case.turns[0].gold
        if (checked_function(gold) is not None) != functions or gold.code is None or not _passes(gold, gold.code):
            continue
        for mutant in mutants_of(gold.code, Known({}, {})):
            if _passes(gold, mutant.code) and not wrong_input(gold, mutant.code):
                kept.append(f"{case.id}: {mutant.words}")
            else:
                refuted += 1
    return refuted, kept


def _right(entries: list[dict[str, Any]], folder: Path, count: int) -> tuple[dict[str, int], list[str], list[str]]:
    """How many rewrites of each task pass its tests, those that do not, and those refuted by other inputs."""
    right, failed, refuted = {}, [], []
    for entry in entries:
        case = read(entry, read_tables(folder, {}))
        gold = case.turns[0].gold
        if gold.code is None or not _passes(gold, gold.code):
            continue
        right[case.id] = 0
        for other in program_rewrites(gold.code, count, 3):
            if not _passes(gold, other):
                failed.append(f"{case.id}:\n{other}")
                continue
            right[case.id] += 1
            refuted += [f"{case.id}:\n{other}"] if wrong_input(gold, other) else []
    return right, failed, refuted


def _passes(gold: Any, code: str) -> bool:
    return isinstance(sandbox().run(code, {}, tests=evidence_of.tests_of(gold, code)), SnippetRan)


@needs(PANDASEVAL)
@needs_sandbox
def test_mutants_of_a_function_of_pandaseval_are_refuted(tmp_path: Path) -> None:
    entries = [entry for entry in read_pandaseval(PANDASEVAL, None) if entry["id"] == "pandaseval_40"]
    refuted, kept = _mutants(entries, tmp_path, functions=True)
    assert (refuted > 0, kept) == (True, [])
    assert _right(entries, tmp_path, 3) == ({"pandaseval_40": 3}, [], [])


@pytest.mark.soak
@needs(PANDASEVAL)
@needs_sandbox
@pytest.mark.parametrize("functions", [True, False])
def test_mutants_of_all_tasks_of_pandaseval_are_refuted(functions: bool, tmp_path: Path) -> None:
    refuted, kept = _mutants([*read_pandaseval(PANDASEVAL, None)], tmp_path, functions=functions)
    kept = [one for one in kept if one not in OTHER_DATA]
    print(f"functions {functions}: {refuted} refuted, {len(kept)} not: {kept}")
    assert refuted >= 30
    assert refuted >= SHARE_REFUTED * (refuted + len(kept))


@pytest.mark.soak
@needs(PANDASEVAL)
@needs_sandbox
def test_twenty_rewrites_of_each_solution_of_pandaseval_are_right(tmp_path: Path) -> None:
    right, failed, refuted = _right([*read_pandaseval(PANDASEVAL, None)], tmp_path, REWRITES)
    print(f"{sum(right.values())} right rewrites of {len(right)} tasks")
    assert refuted == []
    assert failed == []
    assert set(right.values()) == {REWRITES}
