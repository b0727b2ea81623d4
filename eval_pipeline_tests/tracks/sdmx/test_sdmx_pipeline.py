"""A suite through the whole pipeline: tables, figures over cases, cases that cannot be read, a changed catalogue."""

import json
from datetime import date
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import yaml
from openpyxl import load_workbook

from eval_pipeline.reports.nights.message import night_message
from eval_pipeline.reports.nights.night import read_night
from eval_pipeline.tracks.sdmx.catalogue.term_lists import ListedTerm, write_terms
from eval_pipeline_tests.chains import ran_of_suite
from eval_pipeline_tests.support import Lab, Puppet
from eval_pipeline_tests.tracks.sdmx.helpers import LISTED, raw_case, response

ASKED: dict[str, Any] = {
    "one": raw_case(("GDP of Mexico", {"D:ONE INDICATOR": ["GDP", "GDPPC"], "D:ONE COUNTRY": ["MEX"]}), tags=["x"]),
    "two": raw_case(
        ("population of the Baltics", {"D:ONE INDICATOR": ["POP"], "D:ONE COUNTRY": ["EST", "LVA", "LTU"]}),
        ("nothing more", {}),
        tags=["x", "y"],
    ),
}
SAID = {
    "one#0": {"D:ONE INDICATOR": ["GDP", "GDPPC", "GDP_CONST"], "D:ONE COUNTRY": ["MEX"]},
    "two#0": {"D:ONE INDICATOR": ["POP"], "D:ONE COUNTRY": ["EST", "LVA"], "D:TWO COUNTRY": ["EST"]},
    "two#1": {},
}


@pytest.fixture
def home(lab: Lab, puppet: type[Puppet]) -> Lab:
    """The suite `small` with two cases, and a model that selects what `SAID` says."""
    cases = [{**raw, "id": name, "name": f"case {name}"} for name, raw in ASKED.items()]
    folder = lab.suite(cases=cases, track="sdmx")
    (folder / "structures").mkdir()
    write_terms(folder / "structures" / "terms.csv", LISTED)
    lab.versions({"name": "puppet", "provider": "puppet"})
    Puppet.answer = staticmethod(lambda call: response(SAID[f"{call.case_id}#{call.turn_index}"]))
    return lab


def structures(lab: Lab) -> Path:
    return lab.home.data / "suites" / "small" / "structures" / "terms.csv"


def test_terms_dimensions_and_turns_hold_what_was_selected(home: Lab) -> None:
    home.evaluate(publish=True)
    assert home.sql(
        "SELECT turn_id, dataset_id, dimension, id, name, verdict, retrieved FROM sdmx_terms "
        "WHERE verdict <> 'tp' ORDER BY turn_id, verdict, id"
    ) == [
        ("small/one#0", "D:ONE", "INDICATOR", "GDP_CONST", "gross domestic product constant prices", "fp", True),
        ("small/two#0", "D:ONE", "COUNTRY", "LTU", "Lithuania", "fn", True),
        ("small/two#0", "D:TWO", "COUNTRY", "EST", "Estonia", "fp", True),
    ]
    assert home.sql(
        "SELECT turn_id, dataset_id, dimension, target, true_positives, false_positives, false_negatives, "
        "round(precision, 3), recall FROM sdmx_dimensions ORDER BY ALL"
    ) == [
        ("small/one#0", "D:ONE", "COUNTRY", "given", 1, 0, 0, 1.0, 1.0),
        ("small/one#0", "D:ONE", "INDICATOR", "given", 2, 1, 0, 0.667, 1.0),
        ("small/two#0", "D:ONE", "COUNTRY", "given", 2, 0, 1, 1.0, 2 / 3),
        ("small/two#0", "D:ONE", "INDICATOR", "given", 1, 0, 0, 1.0, 1.0),
        ("small/two#0", "D:TWO", "COUNTRY", "absent", 0, 1, 0, 0.0, None),
    ]
    assert home.sql("SELECT turn_id, correct, target_terms, failure_mode FROM sdmx_turns ORDER BY ALL") == [
        ("small/one#0", False, 3, "extra_terms"),
        ("small/two#0", False, 4, "wrong_data_sets"),
        ("small/two#1", True, 0, None),
    ]
    assert home.sql("SELECT codelist, count(*) FROM sdmx_codes GROUP BY ALL ORDER BY ALL") == [
        ("D:ONE/COUNTRY", 5),
        ("D:ONE/INDICATOR", 4),
        ("D:TWO/COUNTRY", 5),
    ]


def test_precision_and_recall_are_means_over_cases_each_the_mean_over_its_turns(home: Lab) -> None:
    """Case one: (2/3 + 1)/2 = 5/6. Case two: turns (1 + 1 + 0)/3 = 2/3 and 1, so 5/6; recalls 5/6 and 1, so 11/12."""
    home.evaluate(publish=True)
    rows = home.sql("SELECT metric, split, split_value, n, mean FROM statistics WHERE metric LIKE 'case_macro_%'")
    found = {(metric.removeprefix("case_macro_"), split, value): (n, mean) for metric, split, value, n, mean in rows}
    expected = {
        ("precision", "all", "all"): (2, 5 / 6),
        ("recall", "all", "all"): (2, (1 + 11 / 12) / 2),
        ("precision", "tag", "y"): (1, 5 / 6),
        ("recall", "tag", "y"): (1, 11 / 12),
        ("precision", "dimension", "INDICATOR"): (2, (2 / 3 + 1) / 2),
        ("precision", "dimension", "COUNTRY"): (2, (1 + 0.5) / 2),
        ("recall", "dimension", "COUNTRY"): (2, (1 + 2 / 3) / 2),
        ("precision", "data_set", "D:TWO"): (1, 0.0),
        ("recall", "data_set", "D:TWO"): (0, None),
    }
    for place, (n, mean) in expected.items():
        assert found[place][0] == n, place
        assert found[place][1] == (None if mean is None else pytest.approx(mean)), place


def test_intervals_of_precision_and_recall_end_where_shares_do(home: Lab) -> None:
    """Recalls of the two cases are 1 and 11/12: 0.958 ± 12.7 · 0.042 would be 0.43 to 1.49."""
    home.evaluate(publish=True)
    ((low, high),) = home.sql("SELECT low, high FROM statistics WHERE metric = 'case_macro_recall' AND split = 'all'")
    assert (low, high) == (pytest.approx(0.429, abs=0.001), 1.0)


def test_an_unknown_id_is_recovered_from(home: Lab) -> None:
    wrong = {"D:ONE COUNTRY": [{"id": "MXC", "name": "Mexico"}]}
    Puppet.answer = staticmethod(
        lambda call: response(wrong if call.number == 0 else SAID[f"{call.case_id}#{call.turn_index}"])
    )
    home.evaluate(publish=True)
    first = "SELECT error_class, error_message FROM attempts WHERE turn_id = 'small/one#0' AND number = 0"
    ((error_class, message),) = home.sql(first)
    assert error_class == "value_error"
    assert "has no code 'MXC'" in message
    assert home.sql(
        "SELECT recovery_success, has_error, true_positives FROM sdmx_turns WHERE turn_id = 'small/one#0'"
    ) == [(True, True, 3)]
    asked = [call for call in Puppet.asked if call.number == 1 and call.case_id == "one"]
    assert "has no code 'MXC'" in asked[0].prompt.messages[-1].text


def test_cases_that_cannot_be_read_are_told_each_run_and_the_others_run(home: Lab) -> None:
    cases = home.home.data / "suites" / "small" / "cases"
    (cases / "broken.yaml").write_text("id: broken\nconversation: [\n")
    outside = json.loads(json.dumps(ASKED["one"]).replace('"MEX"', '"MXC"'))
    (cases / "outside.yaml").write_text(yaml.safe_dump({**outside, "id": "outside", "name": "o"}, sort_keys=False))
    for more in (["--no-report"], []):
        said = home.cli("run", "--eval-date", "2026-03-01", *more)
        assert said.code == 1
        assert "small/cases/broken.yaml:3: does not parse" in said.err
        assert "small/cases/outside.yaml:" in said.err
        assert "has no code 'MXC'" in said.err
        assert "Traceback" not in said.text
    assert home.sql("SELECT DISTINCT case_id FROM turn_results ORDER BY ALL") == [("one",), ("two",)]
    assert home.sql("SELECT file FROM case_problems ORDER BY ALL") == [
        ("small/cases/broken.yaml",),
        ("small/cases/outside.yaml",),
    ]
    assert_left_out_is_told(home, said.out)
    validated = home.cli("validate", "--suite", "small")
    assert validated.code == 2
    assert "the case is left out" in validated.err


def assert_left_out_is_told(home: Lab, said: str) -> None:
    """Nobody takes the rest for the suite: terminal, page, workbooks, comparison, leaderboard and digest say so."""
    counted = "2 of at least 4 cases; 2 left out: 1 because it is wrong in the suite's files"
    sentence = f"{counted} (small/cases/outside.yaml:"
    assert f"cases:    {sentence}" in said
    ((cases, in_suite, because),) = home.sql(
        "SELECT cases, cases_in_suite, left_out_because FROM leaderboard_details('small')"
    )
    assert (cases, in_suite) == (2, 4)
    assert "has no code 'MXC'" in because
    assert home.sql("SELECT file, line, case_id, cause FROM left_out_cases ORDER BY ALL") == [
        ("small/cases/broken.yaml", 3, None, "unreadable_file"),
        ("small/cases/outside.yaml", 1, "outside", "wrong"),
    ]
    reports = home.home.reports
    for folder in (reports / "small" / "puppet" / "2026-03-01", reports / "compare" / "small" / "2026-03-01"):
        assert sentence in unescape((folder / "report.html").read_text())
        overview = load_workbook(folder / "report.xlsx")
        texts = [str(cell) for sheet in overview for row in sheet.iter_rows(values_only=True) for cell in row]
        assert any(sentence in text for text in texts)
    night = night_message(read_night(home.workspace().record, date(2026, 3, 1)), "page")
    assert f"{counted}, 1 because its file cannot be read;" in night
    assert "MXC" not in night, "a message that leaves the machine quotes no file"


def test_a_changed_catalogue_asks_again_and_a_changed_comment_of_a_case_does_not(home: Lab) -> None:
    home.evaluate()
    asked = len(Puppet.asked)
    path = home.home.data / "suites" / "small" / "cases" / "one.yaml"
    path.write_text(path.read_text() + "comments: looked at\n")
    home.evaluate()
    assert len(Puppet.asked) == asked
    write_terms(structures(home), [*LISTED, ListedTerm("D:ONE", "COUNTRY", "PER", "Peru")])
    made = home.evaluate()
    assert not made["generations"].reused
    assert len(Puppet.asked) == 2 * asked


def test_a_catalogue_that_cannot_be_read_fails_the_suite_with_its_file(home: Lab) -> None:
    structures(home).write_text("no,list\n")
    said = home.cli("run", "--no-report")
    assert said.code == 1
    assert "terms.csv:1: a list of terms needs the columns" in said.err


def test_repeated_answers_are_measured_against_each_other(home: Lab) -> None:
    home.versions({"name": "puppet", "provider": "puppet", "samples_per_turn": 3})
    varied: dict[tuple[str, int], Any] = {
        ("one#0", 2): {"D:ONE INDICATOR": ["GDP"]},  # 1 of 4 terms of the other two
        ("two#1", 1): {"D:ONE COUNTRY": ["EST"]},
    }

    def answer(call: Any) -> Any:
        turn = f"{call.case_id}#{call.turn_index}"
        return response(varied.get((turn, call.sample), SAID[turn]))

    Puppet.answer = staticmethod(answer)
    home.evaluate(publish=True)
    found = dict(
        home.sql(
            "SELECT metric, round(mean, 6) FROM statistics WHERE split = 'all' AND metric IN "
            "('case_same_selection', 'case_selection_overlap')"
        )
    )
    # case one: 1 of 3 pairs is equal, the others share 1 of 4 terms; case two: turn 0 always, turn 1 in 1 of 3 pairs
    one, two = (1 / 3, (1 + 2 / 4) / 3), ((1 + 1 / 3) / 2, (1 + 1 / 3) / 2)
    assert found == {
        "case_same_selection": round((one[0] + two[0]) / 2, 6),
        "case_selection_overlap": round((one[1] + two[1]) / 2, 6),
    }


def test_macro_recall_and_precision_are_compared_with_paired_tests(home: Lab) -> None:
    """Nobody is exact on either case, so that only the graded metrics can tell the two apart."""
    cases = [
        {**raw_case(("GDP?", {"D:ONE INDICATOR": ["GDP", "GDPPC"], "D:ONE COUNTRY": ["MEX"]})), "id": f"c{number}"}
        for number in range(12)
    ]
    folder = home.suite(cases=cases, track="sdmx")
    for name in ASKED:
        (folder / "cases" / f"{name}.yaml").unlink()
    home.versions(*({"name": name, "provider": "puppet", "model": name} for name in ("half", "more")))
    said = {"half": {"D:ONE INDICATOR": ["GDP"]}, "more": {"D:ONE INDICATOR": ["GDP", "POP"], "D:ONE COUNTRY": ["MEX"]}}
    for version in said:
        Puppet.answer = staticmethod(lambda call, version=version: response(said[version]))
        home.evaluate("small", version, publish=True)
    ran_of_suite(home.workspace(), "small", "model_comparisons", "comparison_published")
    rows = home.sql(
        "SELECT model_a, model_b, metric, n, clusters, mean_a, mean_b, round(difference, 6), p_corrected < 0.05, "
        "verdict FROM metric_comparisons ORDER BY metric"
    )
    assert rows == [
        ("half", "more", "macro_precision", 12, 12, 0.5, 0.75, 0.25, True, "b_better"),
        ("half", "more", "macro_recall", 12, 12, 0.25, 0.75, 0.5, True, "b_better"),
    ]
    assert home.sql("SELECT verdict FROM model_comparisons") == [("not_significant",)]
    shown = home.cli("compare", "more", "half", "--suite", "small")
    assert "macro_recall: more → half: 0.7500 → 0.2500 over 12 turns, -0.5000 [" in shown.out
    assert "more is significantly better" in shown.out
