"""Mutation scores of suites: what is counted, what people list as equivalent, and the rows that are proposed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from eval_pipeline.core.errors import InputError
from eval_pipeline.operations.suite_work.mutation import equivalent_mutants, proposals, score_lines, suite_mutants
from eval_pipeline.suites.cases import read_suite
from eval_pipeline.suites.headers import read_header
from eval_pipeline.tracks.scored.mutation_score import Survivor, TurnMutants, mutation_score
from eval_pipeline_plugins.tracks.pandas_code.track import TRACK
from eval_pipeline_tests.support import SHIPPED, Lab, built_once, surroundings
from eval_pipeline_tests.tracks.pandas_code.conftest import working_sandbox as working_sandbox
from eval_pipeline_tests.tracks.pandas_code.helpers import needs_sandbox, stall_lab

SAMPLE = SHIPPED / "suites" / "pandas_sample"
ROWS = {"sold": "amount\n4\n5"}
TURNS = [
    TurnMutants("s/a#0", 10, [Survivor("`x` were missing", ROWS, "1", "2"), Survivor("`sum` were `max`", {})]),
    TurnMutants("s/b#0", 5, []),
    TurnMutants("s/c#0", 5, [Survivor("`sort` were missing", {})]),
]


def test_equivalent_mutants_do_not_count() -> None:
    found = mutation_score(TURNS, {"s/c#0": ("`sort` were missing", "`gone` were missing")})
    assert (found.mutants, found.killed, found.equivalent) == (19, 17, 1)
    assert found.share == pytest.approx(17 / 19)
    assert list(found.survivors) == ["s/a#0"]
    assert mutation_score([], {}).share is None


def test_lines_name_the_survivors_and_the_rows_that_would_tell() -> None:
    assert [*score_lines("s", TURNS, {"s/c#0": ("`sort` were missing",)})] == [
        "s/a#0: mutation score 0.800 (8 of 10 mutants give another result)",
        "  the result is the same as if `x` were missing; told apart by sold: 4 / 5",
        "  the result is the same as if `sum` were `max`",
        "s: mutation score 0.895 (17 of 19 mutants give another result); 1 more are listed as equivalent",
    ]


def test_proposals_are_the_rows_that_are_known() -> None:
    assert proposals(TURNS, {}) == [
        {"turn": "s/a#0", "as_if": "`x` were missing", "rows": ROWS, "expected": "1", "mutant_gives": "2"}
    ]


@pytest.mark.parametrize(
    ("text", "place"),
    [("- {turn: a}", "0.mutants"), ("- {turn: a, mutants: [x], why: y, who: z}", "0.who"), ("- [", "")],
)
def test_a_list_in_another_form_is_refused(tmp_path: Path, text: str, place: str) -> None:
    (tmp_path / "equivalent_mutants.yaml").write_text(text)
    with pytest.raises(InputError) as raised:
        equivalent_mutants(tmp_path, "s")
    assert raised.value.problems[0].field == place


@pytest.mark.always
@needs_sandbox
def test_validate_and_harden_tell_what_the_tables_of_a_suite_do_not(lab: Lab) -> None:
    code = 'result = int(df.loc[(df["city"] == "Oslo") & (df["amount"] > 1), "amount"].sum())'
    stall_lab(lab, {"id": "oslo", "tables": "sold", "turns": [{"question": "How much in Oslo?", "code": code}]})
    lab.versions({"name": "oracle", "provider": "oracle"})
    said = lab.cli("validate", "--suite", "stall", "--mutants")
    assert said.code == 0
    assert "  the result is the same as if `amount > 1` were missing; told apart by sold: " in said.out
    assert "as if `city == 'Oslo'` were missing" not in said.out
    proposed = lab.home.root / "proposed"
    assert lab.cli("harden", "--suite", "stall", "--out", str(proposed)).code == 0
    found = yaml.safe_load((proposed / "stall.yaml").read_text())
    assert {"`amount > 1` were missing", "`amount > 1` were `amount >= 1`"} <= {one["as_if"] for one in found}
    assert all(set(one["rows"]) == {"sold"} and one["expected"] != one["mutant_gives"] for one in found)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab.at(built_once(tmp_path_factory, "pandas-sample", lambda folder: None))
    with surroundings(lab):
        yield lab


@needs_sandbox
@pytest.mark.soak
def test_the_sample_tells_nearly_all_mutants_from_its_gold(home: Lab) -> None:
    cases = read_suite(read_header(SAMPLE)).cases
    listed = equivalent_mutants(SAMPLE, "pandas_sample")
    turns = [*suite_mutants(TRACK, cases)]
    found = mutation_score(turns, listed)
    assert found.share is not None
    assert found.share >= 0.98, [*score_lines("pandas_sample", turns, listed)]
    survivors = {turn.turn_id: {one.words for one in turn.survivors} for turn in turns}
    assert {turn: set(words) - survivors[turn] for turn, words in listed.items() if set(words) - survivors[turn]} == {}


@needs_sandbox
def test_the_turn_that_told_nothing_tells_its_conditions(home: Lab) -> None:
    """`readings_humid_nights` once gave 62.0 whichever condition was missing."""
    cases = [case for case in read_suite(read_header(SAMPLE)).cases if case.id == "readings_humid_nights"]
    (turn,) = suite_mutants(TRACK, cases)
    assert turn.survivors == []
    assert turn.mutants >= 12
