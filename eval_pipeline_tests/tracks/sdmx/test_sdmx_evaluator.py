"""StatGPT's own files, unedited: raw cases, questions out of scope, artefacts of jobs; and what its reports measure."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from eval_pipeline.tracks.base import CaseError
from eval_pipeline.tracks.sdmx.catalogue.catalogue import (
    Catalogue,
    CodeList,
    Conventions,
    DataSet,
    Dimension,
    Term,
)
from eval_pipeline.tracks.sdmx.catalogue.term_lists import ListedTerm, write_terms
from eval_pipeline.tracks.sdmx.importers.statgpt_answers import selections
from eval_pipeline.tracks.sdmx.retrieval import Retriever
from eval_pipeline.tracks.sdmx.selection import selection_json
from eval_pipeline.tracks.sdmx.track import TRACK
from eval_pipeline_tests.support import Lab
from eval_pipeline_tests.tracks.sdmx.helpers import (
    attempt_at,
    case_of,
    measured,
    raw_case,
    response,
    retriever,
    scores,
    selection,
)

PINNED = """\
query: "How many hens has Norway?"
candidate_datasets:
  - dataset_id: "FARM:HENS(2.0.0)"
    indicator_rank_in_search: 1
    indicator_name: "Hens, number"
    country_dim_pin: {dimension_name: COUNTRY, value: {id: "NO", name: "Norway"}}
    indicator_dim_pins:
      - {dimension_name: ANIMAL, value: {id: "HEN", name: "Hens"}}
    other_pins:
      - {dimension_name: FREQ, value: {id: "A", name: "Annual"}}
    sample_data:
      - {period: "2022", value: 4, unit: "millions", scale: 6}
  - dataset_id: "FARM:HENS(2.0.0)"
    interpretation: "Cocks are no hens to everybody."
    dimensions:
      - dimension_name: ANIMAL
        values:
          - {id: "COCK", name: "Cocks"}
rejected_datasets:
  - {dataset_id: "FARM:EGGS(1.0)", reason: "eggs are not hens"}
caveats: ["The count is of December."]
search_queries_used: ["hens"]
tool_call_count: 3
"""
PINNED_DIMENSIONS = PINNED[PINNED.index("    dimensions:\n") : PINNED.index("rejected_datasets:")]
CONVERSATIONS = """\
id: c10ef09f-37ca-4754-8714-c951db3bee23
name: eggs
tags: [multidataset]
comments: |
  Either data set answers it.
conversation:
- role: user
  content: How many eggs?
  target:
    is_out_of_scope: false
    tool_calls:
    - - tool_type: DATA_QUERY
        args: {query: 'eggs'}
    datasets_selection: {datasets: []}
    indicator_selection:
    - dataset_id: FARM:EGGS
      dimensions:
      - {dimension_name: ITEM, values: [{id: EGG, name: Eggs}]}
- role: user
  content: And what should I cook?
  target: {is_out_of_scope: true, tool_calls: [], datasets_selection: {datasets: []}, indicator_selection: null}
---
query: "Who wins the election?"
rejected_datasets: ["FARM:HENS(2.0.0)"]
notes: ["Nothing here is about elections."]
"""


def state(found: Mapping[str, Any] | None, *, out_of_scope: bool | None = None) -> dict[str, Any]:
    """The state of a chat completion, with a tool message that selected these: data set → dimension → code → name."""
    messages: list[Any] = []
    if found is not None:
        ids = {f"uuid-{number}": urn for number, urn in enumerate(found)}
        selected = {
            "type": "DATA_QUERY",
            "dimension_id_to_name": {id: found[urn] for id, urn in ids.items()},
            "indexed_datasets_id_map": {**ids, "uuid-other": "FARM:OTHER(1.0)"},
            "datasets_selection_response": {"dataset_ids": list(ids)},
        }
        messages = [
            {"type": "ai", "content": "", "tool_calls": [{"name": "Query_Data", "args": {"query": "q"}, "id": "0"}]},
            {"type": "tool", "tool_call_id": "0", "status": "success", "custom_content": {"state": selected}},
        ]
    return {"show_debug_stages": False, "out_of_scope": out_of_scope, "tool_messages": messages}


def job(id: str, question: str, *states: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    """The artefact of a job."""
    asked = [{"role": "user", "content": question, "target": None}] * len(states)
    responses = [
        {
            "data": {"id": "x", "choices": [{"message": {"content": "", "custom_content": {"state": told}}}]},
            "status_code": 200,
            "start_time_utc": "2026-05-27 07:14:46.838000",
            "response_time": 2.5,
            "exception_info": None,
            **more,
        }
        for told in states
    ]
    return {"test_case": {"id": id, "name": id, "tags": [], "conversation": asked}, "responses": responses}


HENS = {"COUNTRY": {"NO": "Norway"}, "ANIMAL": {"HEN": "Hens", "COCK": "Cocks"}, "FREQ": {"A": "Annual"}}
EGGS = {"FARM:EGGS(1.0)": {"ITEM": {"EGG": "Eggs"}}}


@pytest.fixture
def lab_folder(same_folder: Path) -> Path:
    return same_folder


@pytest.fixture
def imported(lab: Lab, module_folder: Path) -> Lab:
    return lab.made_once(module_folder / "imported", import_the_farm)


def import_the_farm(lab: Lab) -> None:
    source = lab.home.root.parent / "source"
    cases, terms = source / "cases", source / "farm.csv"
    cases.mkdir(parents=True)
    (cases / "hens_norway.yaml").write_text(PINNED)
    (cases / "more.yaml").write_text(CONVERSATIONS)
    write_terms(terms, [ListedTerm("FARM:HENS", "ANIMAL", "HEN", "Hens")])
    said = lab.cli("import", "statgpt", str(cases), "--suite", "farm", "--structures", str(terms))
    assert said.code == 0, said.text
    assert "3 cases with 4 turns imported" in said.out


def test_raw_cases_and_artefacts_go_in_unedited_and_are_scored(imported: Lab, tmp_path: Path) -> None:
    lab = imported
    header = yaml.safe_load((lab.home.imported_suites / "farm" / "suite.yaml").read_text())
    assert header["options"]["aliases"] == {"FARM:HENS(2.0.0)": "FARM:HENS"}
    assert header["options"]["indicator_dimensions"] == ["INDICATOR", "FARM:HENS(2.0.0)/ANIMAL"]
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    hens = {"FARM:HENS(2.0.0)": {**HENS, "ANIMAL": {"HEN": "Hens"}}}
    first, second = state(EGGS), state(None, out_of_scope=True)
    second["tool_messages"] = [*first["tool_messages"], *second["tool_messages"]]  # states repeat earlier messages
    answers = [
        job("made-anew", "!skip_data_query_summarization How many hens has Norway? Research thoroughly.", state(hens)),
        job("c10ef09f-37ca-4754-8714-c951db3bee23", "How many eggs?", first, second),
        job("more_2", "Who wins the election?", state(None)),
    ]
    for number, found in enumerate(answers):
        (jobs / f"{number}.json").write_text(json.dumps(found))
    (jobs / "job_stats.jsonl").write_text('{"job_id": "x"}\n')
    said = lab.cli("import", "statgpt-answers", str(jobs), "--suite", "farm", "--model-version", "app")
    assert said.code == 0, said.text
    assert "4 predictions imported" in said.out
    lab.evaluate("farm", "app", publish=True)
    rows = lab.sql(
        "SELECT case_id, turn_index, exact_selection, macro_recall, indicator_recall, other_recall, out_of_scope, "
        "rejected_data_sets FROM latest_sdmx_turns ORDER BY ALL"
    )
    assert rows == [
        ("c10ef09f-37ca-4754-8714-c951db3bee23", 0, True, 1.0, None, 1.0, False, ""),
        ("c10ef09f-37ca-4754-8714-c951db3bee23", 1, True, 1.0, None, None, True, ""),
        ("hens_norway", 0, False, pytest.approx(5 / 6), 0.5, 1.0, False, "FARM:EGGS(1.0)"),
        ("more_2", 0, True, 1.0, None, None, True, "FARM:HENS(2.0.0)"),
    ]
    assert lab.sql("SELECT DISTINCT said_as FROM latest_sdmx_dimensions WHERE dataset_id = 'FARM:HENS'") == [
        ("FARM:HENS(2.0.0)",)
    ]
    assert lab.sql("SELECT DISTINCT latency_ms FROM latest_turn_results") == [(2500.0,)]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"test_case": {}}, "is no artefact of a StatGPT job"),
        (
            job("nobody", "Who asked that?", state(EGGS)),
            "the suite knows none of id 'nobody', metadata.id 'nobody', qu",
        ),
        ([], "is no artefact of a StatGPT job"),
    ],
)
def test_what_is_no_artefact_of_the_suite_is_told(imported: Lab, tmp_path: Path, found: Any, expected: str) -> None:
    (tmp_path / "a.json").write_text(json.dumps(found))
    source = str(tmp_path / "a.json")
    said = imported.cli("import", "statgpt-answers", source, "--suite", "farm", "--model-version", "app")
    assert said.code == 2
    assert expected in said.err
    empty = tmp_path / "none"
    empty.mkdir()
    said = imported.cli("import", "statgpt-answers", str(empty), "--suite", "farm", "--model-version", "app")
    assert "expected artefacts of jobs (.json), found none" in said.err


def test_a_failed_job_is_an_error_and_no_selection(imported: Lab, tmp_path: Path) -> None:
    failed = job("hens_norway", "x", state(EGGS), exception_info="timeout", status_code=504)
    (tmp_path / "a.jsonl").write_text(
        f"{json.dumps(failed)}\n{json.dumps(job('eggs', 'How many eggs?', state(EGGS)))}\n"
    )
    said = imported.cli(
        "import", "statgpt-answers", str(tmp_path / "a.jsonl"), "--suite", "farm", "--model-version", "app"
    )
    assert said.code == 0, said.text
    imported.evaluate("farm", "app", publish=True)
    sql = "SELECT failure_mode FROM latest_sdmx_turns WHERE case_id = 'hens_norway'"
    assert imported.sql(sql) == [("no_answer",)]


def test_an_artefact_is_read_wherever_a_selection_is() -> None:
    case = case_of(("Mexico?", {"D:ONE COUNTRY": ["MEX"]}))
    turn = case.turns[0]
    whole = job("c1", "Mexico?", state({"D:ONE(1.0)": {"COUNTRY": {"MEX": "Mexico"}}}))
    for text in (json.dumps(whole), json.dumps(whole["responses"][0]), TRACK.from_recorded({"response": whole})):
        assert scores(case, turn, text)["exact_selection"]
    nothing = case_of(("Weather?", {}))
    refused = json.dumps(job("c1", "Weather?", state(EGGS, out_of_scope=True)))
    assert scores(nothing, nothing.turns[0], refused)["exact_selection"]
    unread = attempt_at(case, turn, json.dumps(job("c1", "Mexico?", None)))
    assert "no state of a chat completion" in str(unread.outcome)


def test_tool_messages_that_a_later_state_repeats_count_once() -> None:
    first, second = state(EGGS), state({"FARM:HENS(2.0.0)": HENS})
    second["tool_messages"] = [*first["tool_messages"], *second["tool_messages"]]
    found = list(selections(job("x", "q", first, second)["responses"]))
    named = [[entry["dataset_id"] for entry in one["indicator_selection"]] for one in found if one]
    assert named == [["FARM:EGGS(1.0)"], ["FARM:HENS(2.0.0)"]]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("query: ", "query: ''\nold: ", "hens_norway.yaml:1: query: expected a text of at least 1 character"),
        ('id: "HEN"', "id: NO", "value.id: expected a text, found False; YAML reads NO"),
        ("    dimensions:\n", "    dims:\n", "candidate_datasets.1.dims: unknown field; allowed: dataset_id"),
        (PINNED_DIMENSIONS, "", "candidate_datasets.1: expected 'dimensions', or 'country_dim_pin'"),
        ('"FARM:EGGS(1.0)"', "''", "rejected_datasets.0"),
    ],
)
def test_a_raw_case_that_is_wrong_is_told(lab: Lab, tmp_path: Path, old: str, new: str, expected: str) -> None:
    file = tmp_path / "hens_norway.yaml"
    file.write_text(PINNED.replace(old, new, 1))
    write_terms(tmp_path / "farm.csv", [ListedTerm("FARM:HENS", "ANIMAL", "HEN", "Hens")])
    said = lab.cli("import", "statgpt", str(file), "--suite", "farm", "--structures", str(tmp_path / "farm.csv"))
    assert said.code == 2
    assert expected in said.err


def test_versions_that_structures_lack_are_taken_as_those_that_they_have(lab: Lab, tmp_path: Path) -> None:
    for name, version in (("a", "2.0.0"), ("b", "3.0.0")):
        (tmp_path / f"{name}.yaml").write_text(PINNED.replace("2.0.0", version))
    (tmp_path / "c.yaml").write_text(PINNED.replace("FARM:HENS(2.0.0)", "FARM:DUCKS(1.0)"))
    (tmp_path / "d.yaml").write_text(PINNED.replace("FARM:HENS(2.0.0)", "FARM:DUCKS"))
    write_terms(tmp_path / "farm.csv", [ListedTerm("FARM:HENS(3.0.0)", "ANIMAL", "HEN", "Hens")])
    said = lab.cli("import", "statgpt", str(tmp_path), "--suite", "farm", "--structures", str(tmp_path / "farm.csv"))
    assert said.code == 0, said.text
    assert "targets name FARM:HENS(2.0.0), taken as FARM:HENS(3.0.0)" in said.out
    assert "targets name FARM:DUCKS(1.0), taken as FARM:DUCKS" in said.out


def test_a_suite_goes_back_to_the_form_of_its_cases(imported: Lab, tmp_path: Path) -> None:
    lab, out = imported, tmp_path / "out"
    said = lab.cli("export", "statgpt", "--suite", "farm", "--output", str(out))
    assert said.code == 0, said.text
    assert f"farm: 3 cases written to {out}" in said.out
    assert sorted(path.name for path in out.iterdir()) == ["eggs.yaml", "hens_norway.yaml", "more_2.yaml"]
    eggs, hens = (yaml.safe_load((out / f"{name}.yaml").read_text()) for name in ("eggs", "hens_norway"))
    theirs = next(yaml.safe_load_all(CONVERSATIONS))
    theirs["conversation"][1]["target"]["indicator_selection"] = []  # for null
    del theirs["conversation"][1]["target"]["tool_calls"]
    assert eggs == theirs
    assert hens["rejected_datasets"] == [{"dataset_id": "FARM:EGGS(1.0)", "reason": "eggs are not hens"}]
    assert hens["conversation"][0]["target"]["indicator_selection"][0]["indicator_rank_in_search"] == 1
    again = ("--suite", "again", "--structures", str(lab.home.root.parent / "source" / "farm.csv"))
    assert lab.cli("import", "statgpt", str(out), *again).code == 0
    first, second = (lab.home.imported_suites / name / "cases.jsonl" for name in ("farm", "again"))
    assert sorted(first.read_text().splitlines()) == sorted(second.read_text().splitlines())
    assert (
        "is not empty; expected a new or empty folder"
        in lab.cli("export", "statgpt", "--suite", "farm", "-o", str(out)).err
    )


def test_an_overridden_target_is_exported_as_overridden_and_other_tracks_are_refused(
    imported: Lab, tmp_path: Path
) -> None:
    lab = imported
    dimensions = [{"dimension_name": "ITEM", "values": [{"id": "EGG", "name": "Eggs"}]}]
    target = {"indicator_selection": [{"dataset_id": "FARM:EGGS", "dimensions": dimensions}]}
    by = {"who": "us", "why": "it asks", "gold": {"target": target}}
    overrides = [{"turn": "more_2#0", "action": "corrected", **by}, {"turn": "hens_norway#0", "action": "both", **by}]
    (lab.home.imported_suites / "farm" / "gold_overrides.yaml").write_text(yaml.safe_dump(overrides))
    said = lab.cli("export", "statgpt", "--suite", "farm", "--output", str(tmp_path / "out"))
    assert said.code == 0, said.text
    more, hens = (yaml.safe_load((tmp_path / "out" / f"{name}.yaml").read_text()) for name in ("more_2", "hens_norway"))
    assert more["conversation"][0]["target"] == {"is_out_of_scope": False, **target}
    assert hens["conversation"][0]["target"]["alternatives"] == [target]
    lab.suite("pages")
    assert "only suites of track sdmx" in lab.cli("export", "statgpt", "--suite", "pages").err


def with_alternatives(*targets: Mapping[str, Any]) -> dict[str, Any]:
    raw = raw_case(("which?", targets[0]))
    others = [selection_json(selection(target)) for target in targets[1:]]
    raw["conversation"][0]["target"]["alternatives"] = others
    return raw


def test_any_accepted_target_will_do_and_the_closest_one_is_scored() -> None:
    first, second = {"D:ONE COUNTRY": ["MEX"], "D:ONE INDICATOR": ["GDP"]}, {"D:TWO COUNTRY": ["MEX", "ARG"]}
    case = TRACK.read_case(with_alternatives(first, second), "suite", "cases/one.yaml", 1, retriever())
    turn = case.turns[0]
    for said, exact, used, recall in (
        (first, True, 0, 1.0),
        (second, True, 1, 1.0),
        ({"D:TWO COUNTRY": ["MEX"]}, False, 1, 0.5),
        ({"D:ONE COUNTRY": ["MEX"]}, False, 0, 0.5),
        ({}, False, 0, 0.0),
    ):
        attempt = attempt_at(case, turn, response(said))
        found = measured(case, turn, attempt)
        row = TRACK.turn_row(case, turn, [attempt])
        assert (found["exact_selection"], row["target_used"], found["macro_recall"]) == (exact, used, recall), said
        assert row["accepted_targets"] == 2
        assert row["target"] == selection_json(selection((first, second)[used]))["indicator_selection"]
    assert "\nor\n" in TRACK.expected_text(turn)
    assert len(TRACK.gold_json(turn)["alternatives"]) == 1
    assert TRACK.read_case({**raw_case(("which?", first))}, "s", "c", 1, retriever()).turns[0].gold.alternatives == ()


def test_wrong_alternatives_and_targets_out_of_scope_are_told() -> None:
    wrong = {"D:TWO COUNTRY": [{"id": "XX", "name": "x"}]}
    with pytest.raises(CaseError) as caught:
        TRACK.read_case(with_alternatives({"D:ONE COUNTRY": ["MEX"]}, wrong), "s", "c", 1, retriever())
    (problem,) = caught.value.problems
    assert problem[0][:5] == ("conversation", 0, "target", "alternatives", 0)
    raw = raw_case(("which?", {"D:ONE COUNTRY": ["MEX"]}))
    raw["conversation"][0]["target"]["is_out_of_scope"] = True
    with pytest.raises(CaseError, match="out of scope has no indicator_selection"):
        TRACK.read_case(raw, "s", "c", 1, retriever())


CODES = {"_T": "Total", "S1": "Total economy", "M": "Men"}


def totals(*names: str) -> Retriever:
    codes = CodeList("A:CL(1.0)", tuple(Term(id, name) for id, name in CODES.items()))
    dimensions = {id: Dimension(id, id, codes) for id in ("SEX", "SECTOR", "INDICATOR", "AGE")}
    conventions = Conventions(totals=frozenset(names)) if names else Conventions()
    held = DataSet("A:B", "a", "", "1.0", dimensions)
    return Retriever(Catalogue({"A:B": held}, conventions=conventions), 20, 20)


def measured_there(target: Mapping[str, Any], said: Mapping[str, Any], held: Retriever) -> dict[str, Any]:
    def written(found: Mapping[str, Any]) -> dict[str, Any]:
        return {f"A:B {place}": [{"id": id, "name": CODES[id]} for id in ids.split()] for place, ids in found.items()}

    case = TRACK.read_case(raw_case(("which?", written(target))), "suite", "cases/one.yaml", 1, held)
    return scores(case, case.turns[0], response(written(said)))


@pytest.mark.parametrize(
    ("target", "said", "names", "plain", "without"),
    [
        ({"INDICATOR": "M", "SEX": "_T"}, {"INDICATOR": "M"}, (), (False, 0.5, 0.5), (True, 1.0, 1.0)),
        ({"INDICATOR": "M"}, {"INDICATOR": "M", "SECTOR": "S1"}, (), (False, 0.5, 1.0), (True, 1.0, 1.0)),
        ({"INDICATOR": "M", "SEX": "_T"}, {"INDICATOR": "M", "SEX": "M"}, (), (False, 0.5, 0.5), (False, 0.5, 0.5)),
        ({"INDICATOR": "M", "SEX": "_T M"}, {"INDICATOR": "M"}, (), (False, 0.5, 0.5), (False, 0.5, 0.5)),
        ({"INDICATOR": "M"}, {"INDICATOR": "M", "SECTOR": "S1"}, ("_T",), (False, 0.5, 1.0), (False, 0.5, 1.0)),
        ({"INDICATOR": "M"}, {"INDICATOR": "M", "AGE": "M"}, ("AGE/M",), (False, 0.5, 1.0), (True, 1.0, 1.0)),
        ({"SEX": "_T"}, {}, (), (False, 0.0, 0.0), (True, 1.0, 1.0)),
    ],
)
def test_redundant_totals_are_reported_with_and_without(
    target: Mapping[str, Any],
    said: Mapping[str, Any],
    names: tuple[str, ...],
    plain: tuple[bool, float, float],
    without: tuple[bool, float, float],
) -> None:
    found = measured_there(target, said, totals(*names))
    assert (found["exact_selection"], found["macro_precision"], found["macro_recall"]) == plain
    of = ("exact_without_totals", "macro_precision_without_totals", "macro_recall_without_totals")
    assert tuple(found[name] for name in of) == without


@pytest.mark.parametrize(
    ("target", "said", "expected"),
    [
        # INDICATOR and SEX as in the target, AGE pinned beyond it: soft leaves it out, hard counts it.
        ({"INDICATOR": "M", "SEX": "M"}, {"INDICATOR": "M", "SEX": "M", "AGE": "M"}, (1.0, 1.0, 1.0, 2 / 3)),
        # one of two terms of SEX is wrong: half the credit, or none.
        ({"INDICATOR": "M", "SEX": "M"}, {"INDICATOR": "M", "SEX": "M S1"}, (1.0, 1.0, 0.75, 0.5)),
        ({"INDICATOR": "M _T", "SEX": "M"}, {"INDICATOR": "M"}, (0.5, 0.0, 1.0, 1.0)),
        ({"SEX": "M"}, {}, (None, 0.0, None, None)),
        ({}, {"SEX": "M"}, (None, None, 0.0, 0.0)),
    ],
)
def test_recall_of_indicators_and_the_two_precisions(
    target: Mapping[str, Any], said: Mapping[str, Any], expected: tuple[float | None, ...]
) -> None:
    found = measured_there(target, said, totals())
    assert tuple(found[n] for n in ("indicator_recall", "other_recall", "soft_precision", "hard_precision")) == expected
