"""StatGPT's own files, unedited: cases and answers that are imported, suites that are exported."""

import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from eval_pipeline.core.errors import InputError, UsageError
from eval_pipeline_plugins.tracks.sdmx.catalogue.term_lists import ListedTerm, read_terms, write_terms
from eval_pipeline_plugins.tracks.sdmx.responses.statgpt_answers import selections
from eval_pipeline_plugins.tracks.sdmx.track import TRACK
from eval_pipeline_tests import outside
from eval_pipeline_tests.support import Lab
from eval_pipeline_tests.tracks.sdmx.helpers import LISTED, attempt_at, case_of, imported, scores

CASES = """\
id: people
name: people
tags: [gtdc]
source: a repository
conversation:
- role: user
  content: How many people live in Mexico?
  target:
    indicator_selection:
    - dataset_id: D:ONE
      dimensions:
      - dimension_name: COUNTRY
        values: [{id: MEX, name: Mexico}, {id: MEX, name: "Mexico, United States of"}]
      - dimension_name: FREQUENCY
        values: [{id: A, name: Annual}]
      indicator_rank_in_search: 3
- role: assistant
  content: Many.
rejected_datasets: [D:SIX, D:SEVEN]
---
name: without an id
conversation:
- role: user
  content: What else is there?
  target:
    indicator_selection:
    - dataset_id: D:NEW
      dimensions:
      - dimension_name: ITEM
        values: [{id: I, name: item}]
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Cases and structures."""
    (tmp_path / "cases.yaml").write_text(CASES)
    write_terms(tmp_path / "terms.csv", LISTED)
    return tmp_path / "cases.yaml", tmp_path / "terms.csv"


def test_cases_and_terms_that_the_structures_lack_make_a_suite(lab: Lab, files: tuple[Path, Path]) -> None:
    lab.versions({"name": "oracle", "provider": "oracle"})
    made = imported(lab, *files)
    assert (made.cases, made.turns) == (2, 2)
    first = (made.folder / "cases.jsonl").read_text()
    assert (imported(lab, *files).folder / "cases.jsonl").read_text() == first, "the id that is made is the same"
    added = read_terms(lab.home.imported_suites / "foreign" / "structures" / "from_targets.csv")
    assert [(t.dataset_id, t.dimension, t.id, t.name, t.from_target) for t in added] == [
        ("D:ONE", "COUNTRY", "MEX", "Mexico, United States of", "true"),
        ("D:ONE", "FREQUENCY", "A", "Annual", "true"),
        ("D:NEW", "ITEM", "I", "item", "true"),
    ]
    lab.evaluate("foreign", "oracle", publish=True)
    rows = lab.sql(
        "SELECT case_id, exact_selection, retrieval_recall, retrieval_recall_from_target, rejected_data_sets "
        "FROM latest_sdmx_turns ORDER BY target_terms DESC"
    )
    assert rows[0] == ("people", True, 1.0, 1.0, "D:SIX, D:SEVEN")
    assert rows[1][1:] == (True, None, 1.0, "")
    assert len(rows[1][0]) == 36
    assert lab.sql("SELECT count(*) FROM latest_sdmx_terms WHERE from_target") == [(3,)]


def test_cases_that_share_a_name_get_an_id_each(lab: Lab, files: tuple[Path, Path]) -> None:
    again = CASES.partition("---\n")[2]
    files[0].write_text("---\n".join([CASES, again, again]))
    assert imported(lab, *files).cases == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            CASES.replace("name: item", "name: ''"),
            "dimensions.0.values.0.name: expected a text of at least 1 character",
        ),
        (
            "id: x\nconversation:\n- {role: system, content: x}\n",
            "cases.yaml:1: conversation: expected a turn of role 'user'",
        ),
        ("id: x\nconversation: []\n", "cases.yaml:1: conversation: expected at least 1 item"),
        (
            CASES.replace("  target:\n", "  expected:\n"),
            "cases.yaml:1: conversation.0.expected: unknown field; allowed: role, content, target",
        ),
        (
            f"{CASES}---\nid: x\nconversation:\n- {{role: user, content: x}}\n",
            "cases.yaml:32: conversation.0: expected a 'target'; where nothing is to be selected, {is_out",
        ),
        (
            "id: x\nconversation:\n- {role: user, content: x, target: }\n",
            "cases.yaml:1: conversation.0: expected a 'target'",
        ),
        (
            CASES.replace("content: Many.", "content: Many.\n  target: {}"),
            "cases.yaml:1: conversation.1: only a turn of role 'user' has a 'target'",
        ),
        (
            CASES.replace("role: assistant", "role: users"),
            "cases.yaml:1: conversation.1.role: expected 'user', 'assistant', 'system' or 'tool', found 'users'",
        ),
        (
            CASES.replace("indicator_selection:", "indicators:", 1),
            "cases.yaml:1: conversation.0.target.indicators: unknown field; allowed: indicator_selection, alternatives",
        ),
        (
            CASES.replace("      indicator_rank_in_search: 3", "      dims: []"),
            "cases.yaml:1: conversation.0.target.indicator_selection.0.dims: unknown field; allowed: dataset_id",
        ),
        (CASES.replace("tags:", "tag:"), "cases.yaml:1: tag: unknown field; allowed: id, name, tags"),
        (
            "query: Hens?\ncandidates: [{dataset_id: D:ONE}]\n",
            "cases.yaml:1: candidates: unknown field; allowed: query, candidate_datasets",
        ),
        (
            "query: Hens?\ncandidate_datasets:\n- {dataset_id: D:ONE, dimension: []}\n",
            "cases.yaml:1: candidate_datasets.0.dimension: unknown field; allowed: dataset_id",
        ),
        ("id: x\n---\nname: [\n", "cases.yaml:4: does not parse"),
        ("", "cases.yaml:1: expected YAML documents with 'conversation', found none"),
    ],
)
def test_a_file_that_is_wrong_is_told_with_its_line(
    lab: Lab, files: tuple[Path, Path], text: str, expected: str
) -> None:
    files[0].write_text(text)
    refused(lab, expected, *files)


def refused(lab: Lab, told: str, *files: Path) -> None:
    with pytest.raises(InputError, match=re.escape(told)):
        imported(lab, *files)
    assert not (lab.home.imported_suites / "foreign").exists()


def test_a_structure_that_is_not_there_or_given_twice_is_refused(lab: Lab, files: tuple[Path, Path]) -> None:
    with pytest.raises(UsageError, match="no file"):
        imported(lab, files[0], Path("nowhere.xml"))
    refused(lab, f"{files[1].parent}: is a folder; expected the files in it", files[0], files[1].parent)
    refused(lab, "another structure file has the same name", *files, files[1])
    packed = files[1].with_name("all.zip")
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("inner/bad.json", "{}")
    refused(lab, f"{packed}/inner/bad.json: is no SDMX structure message", files[0], packed)


TERMS = "dataset_id,dimension,id,name\nD:ONE,COUNTRY,MEX,Mexico\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TERMS + "D:ONE,COUNTRY,KOR,Korea, Republic of\n", "terms.csv:3: has 5 cells, the header has 4"),
        (TERMS.replace("\n", ",name\n", 1), "terms.csv:1: the header names 'name' more than once"),
        (TERMS + "D:ONE,COUNTRY,KOR\n", "terms.csv:3: name: must not be empty"),
        ("id,title\nNGDP,Gross domestic product, current prices\n", "terms.csv:2: has 3 cells, the header has 2"),
        ("id,title\nNGDP\n", "terms.csv:2: title: must not be empty"),
        ("id,title\nCI,C\xf4te\n", "terms.csv: cannot be read as UTF-8 text"),
        ("ISO,WEO,Name,ISO\nAFG,512,Afghanistan,X\n", "terms.csv:1: the header names 'ISO' more than once"),
    ],
)
def test_a_list_of_terms_that_is_wrong_is_told_under_its_own_name(
    lab: Lab, files: tuple[Path, Path], text: str, expected: str
) -> None:
    files[1].write_text(text, encoding="latin-1")
    refused(lab, f"{files[1].parent}/{expected}", *files)


@outside.needs(outside.SDMX)
def test_the_real_cases_are_evaluated_with_the_imf_structures_and_weo_lists(lab: Lab) -> None:
    lab.versions({"name": "oracle", "provider": "oracle"})
    structures = [*sorted((outside.SDMX / "imf_codelists").glob("*.xml")), *sorted(outside.SDMX.glob("weo_*.csv"))]
    made = imported(lab, outside.SDMX / "statgpt_testcases.yaml", *structures, suite="real")
    assert (made.cases, made.turns) == (9, 9)
    lab.evaluate("real", "oracle", publish=True)
    assert lab.sql("SELECT count(*), avg(exact_selection::INT), avg(macro_recall) FROM latest_sdmx_turns") == [
        (9, 1.0, 1.0)
    ]
    known, added = lab.sql(
        "SELECT avg(retrieved::INT) FILTER (NOT from_target), avg(retrieved::INT) FILTER (from_target) "
        "FROM latest_sdmx_terms"
    )[0]
    assert known == 1.0
    assert 0.95 < added <= 1
    assert (
        lab.sql("SELECT count(*) FROM sdmx_codes WHERE codelist = 'IMF.RES:WEO/INDICATOR' AND NOT from_target")[0][0]
        == 44
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
def farm(lab: Lab, module_folder: Path) -> Lab:
    return lab.made_once(module_folder / "imported", import_the_farm)


def import_the_farm(lab: Lab) -> None:
    source = lab.home.root.parent / "source"
    cases, terms = source / "cases", source / "farm.csv"
    cases.mkdir(parents=True)
    (cases / "hens_norway.yaml").write_text(PINNED)
    (cases / "more.yaml").write_text(CONVERSATIONS)
    write_terms(terms, [ListedTerm("FARM:HENS", "ANIMAL", "HEN", "Hens")])
    made = imported(lab, cases, terms, suite="farm")
    assert (made.cases, made.turns) == (3, 4)


def test_raw_cases_and_artefacts_go_in_unedited_and_are_scored(farm: Lab, tmp_path: Path) -> None:
    lab = farm
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
def test_what_is_no_artefact_of_the_suite_is_told(farm: Lab, tmp_path: Path, found: Any, expected: str) -> None:
    (tmp_path / "a.json").write_text(json.dumps(found))
    source = str(tmp_path / "a.json")
    said = farm.cli("import", "statgpt-answers", source, "--suite", "farm", "--model-version", "app")
    assert said.code == 2
    assert expected in said.err
    empty = tmp_path / "none"
    empty.mkdir()
    said = farm.cli("import", "statgpt-answers", str(empty), "--suite", "farm", "--model-version", "app")
    assert "expected artefacts of jobs (.json), found none" in said.err


def test_a_failed_job_is_an_error_and_no_selection(farm: Lab, tmp_path: Path) -> None:
    failed = job("hens_norway", "x", state(EGGS), exception_info="timeout", status_code=504)
    (tmp_path / "a.jsonl").write_text(
        f"{json.dumps(failed)}\n{json.dumps(job('eggs', 'How many eggs?', state(EGGS)))}\n"
    )
    said = farm.cli("import", "statgpt-answers", str(tmp_path / "a.jsonl"), "--suite", "farm", "--model-version", "app")
    assert said.code == 0, said.text
    farm.evaluate("farm", "app", publish=True)
    sql = "SELECT failure_mode FROM latest_sdmx_turns WHERE case_id = 'hens_norway'"
    assert farm.sql(sql) == [("no_answer",)]


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
        ('id: "HEN"', "id: NO", "value.id: expected a text, found false; YAML reads NO"),
        ("    dimensions:\n", "    dims:\n", "candidate_datasets.1.dims: unknown field; allowed: dataset_id"),
        (PINNED_DIMENSIONS, "", "candidate_datasets.1: expected 'dimensions', or 'country_dim_pin'"),
        ('"FARM:EGGS(1.0)"', "''", "rejected_datasets.0"),
    ],
)
def test_a_raw_case_that_is_wrong_is_told(lab: Lab, tmp_path: Path, old: str, new: str, expected: str) -> None:
    file = tmp_path / "hens_norway.yaml"
    file.write_text(PINNED.replace(old, new, 1))
    write_terms(tmp_path / "farm.csv", [ListedTerm("FARM:HENS", "ANIMAL", "HEN", "Hens")])
    refused(lab, expected, file, tmp_path / "farm.csv")


def test_versions_that_structures_lack_are_taken_as_those_that_they_have(lab: Lab, tmp_path: Path) -> None:
    for name, version in (("a", "2.0.0"), ("b", "3.0.0")):
        (tmp_path / f"{name}.yaml").write_text(PINNED.replace("2.0.0", version))
    (tmp_path / "c.yaml").write_text(PINNED.replace("FARM:HENS(2.0.0)", "FARM:DUCKS(1.0)"))
    (tmp_path / "d.yaml").write_text(PINNED.replace("FARM:HENS(2.0.0)", "FARM:DUCKS"))
    write_terms(tmp_path / "farm.csv", [ListedTerm("FARM:HENS(3.0.0)", "ANIMAL", "HEN", "Hens")])
    notes = " ".join(imported(lab, tmp_path, tmp_path / "farm.csv").notes)
    assert "FARM:HENS(2.0.0), taken as FARM:HENS(3.0.0)" in notes
    assert "FARM:DUCKS(1.0), taken as FARM:DUCKS" in notes


def test_a_suite_goes_back_to_the_form_of_its_cases(farm: Lab, tmp_path: Path) -> None:
    lab, out = farm, tmp_path / "out"
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
    imported(lab, out, lab.home.root.parent / "source" / "farm.csv", suite="again")
    first, second = (lab.home.imported_suites / name / "cases.jsonl" for name in ("farm", "again"))
    assert sorted(first.read_text().splitlines()) == sorted(second.read_text().splitlines())
    assert (
        "is not empty; expected a new or empty folder"
        in lab.cli("export", "statgpt", "--suite", "farm", "-o", str(out)).err
    )


def test_an_overridden_target_is_exported_as_overridden_and_other_tracks_are_refused(farm: Lab, tmp_path: Path) -> None:
    lab = farm
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
