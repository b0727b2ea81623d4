"""The importer of StatGPT's cases: a small file of our own, and the real one."""

import zipfile
from pathlib import Path

import pytest

from eval_pipeline.tracks.sdmx.catalogue.term_lists import read_terms, write_terms
from eval_pipeline_tests import outside
from eval_pipeline_tests.support import Lab
from eval_pipeline_tests.tracks.sdmx.helpers import LISTED

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
    cases, terms = tmp_path / "cases.yaml", tmp_path / "terms.csv"
    cases.write_text(CASES)
    write_terms(terms, LISTED)
    return cases, terms


def test_cases_and_terms_that_the_structures_lack_make_a_suite(lab: Lab, files: tuple[Path, Path]) -> None:
    lab.versions({"name": "oracle", "provider": "oracle"})
    said = lab.cli("import", "statgpt", str(files[0]), "--suite", "foreign", "--structures", str(files[1]))
    assert said.code == 0, said.text
    assert "2 cases with 2 turns imported" in said.out
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
    made = rows[1]
    assert made[1:] == (True, None, 1.0, "")
    assert len(made[0]) == 36
    assert lab.sql("SELECT count(*) FROM latest_sdmx_terms WHERE from_target") == [(3,)]


def test_an_id_that_is_made_is_the_same_each_time(lab: Lab, files: tuple[Path, Path]) -> None:
    arguments = ("--suite", "foreign", "--structures", str(files[1]))
    texts = []
    for _ in range(2):
        assert lab.cli("import", "statgpt", str(files[0]), *arguments).code == 0
        texts.append((lab.home.imported_suites / "foreign" / "cases.jsonl").read_text())
    assert texts[0] == texts[1]


def test_cases_that_share_a_name_get_an_id_each(lab: Lab, files: tuple[Path, Path]) -> None:
    again = CASES.partition("---\n")[2]
    files[0].write_text("---\n".join([CASES, again, again]))
    said = lab.cli("import", "statgpt", str(files[0]), "--suite", "foreign", "--structures", str(files[1]))
    assert "4 cases with 4 turns imported" in said.out, said.text


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
    said = lab.cli("import", "statgpt", str(files[0]), "--suite", "foreign", "--structures", str(files[1]))
    assert said.code == 2
    assert expected in said.err
    assert not (lab.home.imported_suites / "foreign").exists()


def test_a_structure_that_is_not_there_or_given_twice_is_refused(lab: Lab, files: tuple[Path, Path]) -> None:
    base = ("import", "statgpt", str(files[0]), "--suite", "foreign", "--structures")
    assert "no file" in lab.cli(*base, "nowhere.xml").err
    told = lab.cli(*base, str(files[1].parent)).err
    assert f"{files[1].parent}: is a folder; expected the files in it, each by its name" in told
    assert "another structure file has the same name" in lab.cli(*base, str(files[1]), base[-1], str(files[1])).err


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
    said = lab.cli("import", "statgpt", str(files[0]), "--suite", "foreign", "--structures", str(files[1]))
    assert said.code == 2
    assert f"{files[1].parent}/{expected}" in said.err
    assert not (lab.home.imported_suites / "foreign").exists()


@outside.needs(outside.SDMX)
def test_the_real_cases_are_evaluated_with_the_imf_structures_and_weo_lists(lab: Lab) -> None:
    lab.versions({"name": "oracle", "provider": "oracle"})
    structures = [*sorted((outside.SDMX / "imf_codelists").glob("*.xml")), *sorted(outside.SDMX.glob("weo_*.csv"))]
    options = [part for path in structures for part in ("--structures", str(path))]
    said = lab.cli("import", "statgpt", str(outside.SDMX / "statgpt_testcases.yaml"), "--suite", "real", *options)
    assert said.code == 0, said.text
    assert "9 cases with 9 turns" in said.out
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


def test_a_message_in_an_archive_is_told_under_the_name_of_the_archive_that_was_given(
    lab: Lab, files: tuple[Path, Path]
) -> None:
    packed = files[1].with_name("all.zip")
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("inner/bad.json", "{}")
    said = lab.cli("import", "statgpt", str(files[0]), "--suite", "foreign", "--structures", str(packed))
    assert said.code == 2
    assert f"{packed}/inner/bad.json: is no SDMX structure message" in said.err
