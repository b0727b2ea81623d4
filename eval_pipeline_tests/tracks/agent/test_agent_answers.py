"""What is given to the tool `answer` is right whatever its form, and nothing that cheats is."""

import json
from typing import Any

import pytest

from eval_pipeline.table_comparison.contracts import Contract
from eval_pipeline.tracks.agent.checking.answer import compare_answer, is_refusal
from eval_pipeline.tracks.agent.checking.forbidden import kinds_in
from eval_pipeline_tests.goldens import golden

ENTRIES = {entry["name"]: entry for entry in golden("agent_answers.yaml")["entries"]}


def is_right(entry: dict[str, Any], given: Any) -> bool:
    labels = entry.get("labels", ())
    return compare_answer(given, [entry["right"]], entry["question"], Contract(), labels).right


@pytest.mark.parametrize("name", ENTRIES)
def test_an_answer_is_judged_by_what_it_says(name: str) -> None:
    entry = ENTRIES[name]
    assert is_right(entry, entry["right"])
    assert [one for one in entry["accepted"] if not is_right(entry, one)] == []
    assert [one for one in entry["refused"] if is_right(entry, one)] == []


def looked_up(right: Any, given: Any) -> bool:
    """A validator as benchmarks of agents have them: all that is expected stands somewhere in the answer."""
    text = (given if isinstance(given, str) else json.dumps(given)).lower()
    rows = right if isinstance(right, list) else [right]
    cells = [cell for row in rows for cell in (row.values() if isinstance(row, dict) else [row])]
    return all(str(cell).lower() in text for cell in cells)


def test_looking_for_what_is_expected_would_be_unfair_both_ways() -> None:
    """The contrast: of the same answers it refuses right ones and passes wrong ones, and ours does neither."""
    pairs = [(entry, one, True) for entry in ENTRIES.values() for one in entry["accepted"]]
    pairs += [(entry, one, False) for entry in ENTRIES.values() for one in entry["refused"]]
    baseline = [looked_up(entry["right"], one) is not is_good for entry, one, is_good in pairs]
    judged = list(zip(baseline, pairs, strict=True))
    right, wrong = ([bad for bad, pair in judged if pair[2] is kind] for kind in (True, False))
    told = f"refused {sum(right)} of {len(right)} right answers, passed {sum(wrong)} of {len(wrong)} wrong ones"
    assert sum(right) / len(right) > 0.1, told
    assert sum(wrong) / len(wrong) > 0.3, told
    print(told)


def test_the_answer_to_another_task_is_wrong() -> None:
    answers = [entry["right"] for entry in ENTRIES.values()]
    for entry in ENTRIES.values():
        assert [one for one in answers if one != entry["right"] and is_right(entry, one)] == []


@pytest.mark.parametrize(
    "text",
    [
        "This cannot be answered: there are no ages.",
        "I can't determine this from the data.",
        {"answer": None, "why": "It cannot be determined, the column is missing."},
        "There is not enough data.",
    ],
)
def test_who_says_that_there_is_no_answer_is_understood(text: Any) -> None:
    assert is_refusal(text)


@pytest.mark.parametrize("answer", [None, "", 0, "none", "42", [], {"answer": 7}, "The answer is that all are late."])
def test_who_gives_an_answer_does_not_refuse(answer: Any) -> None:
    assert not is_refusal(answer)


@pytest.mark.parametrize(
    ("text", "is_sql", "kinds"),
    [
        ("DELETE FROM a", True, {"DELETE"}),
        ("delete\nfrom a; drop table b", True, {"DELETE", "DROP"}),
        ("SELECT 'DROP TABLE a' -- UPDATE a SET b = 1", True, set()),
        ("INSERT OR REPLACE INTO a VALUES (1)", True, {"INSERT"}),
        ("CREATE TEMP TABLE t AS SELECT 1", True, {"CREATE"}),
        ("WITH x AS (SELECT 1) UPDATE a SET b = 1", True, {"UPDATE"}),
        ('UPDATE main."a" AS x SET b = 1', True, {"UPDATE"}),
        ("con.execute('DROP TABLE a')", False, {"DROP"}),
        ("sqlite3 a.db 'TRUNCATE b'", False, {"TRUNCATE"}),
        ("print('please update the table and drop a line')", False, set()),
    ],
)
def test_kinds_of_statements_are_found_wherever_they_are_written(text: str, is_sql: bool, kinds: set[str]) -> None:
    assert kinds_in(text, is_sql) == kinds
