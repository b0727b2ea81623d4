"""What is given to the tool `answer` is right whatever its form, and nothing that cheats is."""

import json
import re
from typing import Any

import pytest

from eval_pipeline.table_comparison.contracts import Contract
from eval_pipeline_plugins.tracks.agent.checking.answer import compare_answer, is_refusal
from eval_pipeline_plugins.tracks.agent.checking.forbidden import kinds_in
from eval_pipeline_tests.goldens import golden

ENTRIES = {entry["name"]: entry for entry in golden("agent_answers.yaml")["entries"]}


def is_right(entry: dict[str, Any], given: Any) -> bool:
    labels, contract = entry.get("labels", ()), Contract(**entry.get("compare", {}))
    return compare_answer(given, [entry["right"]], entry["question"], contract, labels).right


@pytest.mark.parametrize("name", ENTRIES)
def test_an_answer_is_judged_by_what_it_says(name: str) -> None:
    entry = ENTRIES[name]
    assert is_right(entry, entry["right"])
    assert [one for one in entry["accepted"] if not is_right(entry, one)] == []
    assert [one for one in entry["refused"] if is_right(entry, one)] == []


@pytest.mark.parametrize(
    ("given", "right", "words"),
    [
        (0, 4.0, "0 where 4.0 is right"),  # not: rounded, as fractions of percentages
        ("Berlin", "Bonn", "Berlin where Bonn is right"),
        ("12.4", 12.47, "12.4 where 12.47 is right"),
    ],
)
def test_a_wrong_value_is_told_beside_the_right_one(given: Any, right: Any, words: str) -> None:
    found = compare_answer(given, [right], "What is it?", Contract())
    assert (found.right, found.words) == (False, words)


def looked_up(right: Any, given: Any) -> bool:
    """A validator as DataAgentBench has them: all that is expected stands somewhere in the answer."""
    text = (given if isinstance(given, str) else json.dumps(given)).lower()
    return all(str(cell).lower() in text for cell in _cells(right))


def relaxed(right: Any, given: Any) -> bool:
    """The same, as its pull request 41 loosens sixteen of them: separators, Markdown, `&`, a tolerance of 0.015."""
    text = _loose(given if isinstance(given, str) else json.dumps(given))
    numbers = [float(found) for found in re.findall(r"-?\d+(?:\.\d+)?", text)]
    return all(
        any(abs(one - cell) <= 0.015 for one in numbers)
        if isinstance(cell, int | float) and not isinstance(cell, bool)
        else _loose(str(cell)) in text
        for cell in _cells(right)
    )


def _cells(right: Any) -> list[Any]:
    rows = right if isinstance(right, list) else [right]
    return [cell for row in rows for cell in (row.values() if isinstance(row, dict) else [row])]


def _loose(text: str) -> str:
    text = re.sub(r"(?<=\d),(?=\d{3})", "", text.lower().replace("&", "and"))
    return " ".join(re.sub(r"[*_`#|]|\([^)]*\)", " ", text).split())


@pytest.mark.parametrize(("validator", "refused", "passed"), [(looked_up, 69, 149), (relaxed, 46, 156)])
def test_looking_for_what_is_expected_would_be_unfair_both_ways(validator: Any, refused: int, passed: int) -> None:
    """The contrast: of the same answers it refuses right ones and passes wrong ones, and ours does neither."""
    told = [
        [validator(entry["right"], one) for entry in ENTRIES.values() for one in entry[kind]]
        for kind in ("accepted", "refused")
    ]
    assert [len(one) for one in told] == [287, 308]
    assert (told[0].count(False), told[1].count(True)) == (refused, passed)
    assert validator("Africa", "The largest region is Asia, not Africa")


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.soak)])
def test_the_answer_to_another_task_is_wrong(every: int) -> None:
    answers = [entry["right"] for entry in ENTRIES.values()]
    for number, entry in enumerate(ENTRIES.values()):
        others = answers[number % every :: every]
        assert [one for one in others if one != entry["right"] and is_right(entry, one)] == []


@pytest.mark.parametrize(
    "text",
    [
        "This cannot be answered: there are no ages.",
        "I can't determine this from the data.",
        {"answer": None, "why": "It cannot be determined, the column is missing."},
        "There is not enough data.",
        "It is not possible to say how many there are, as some were abandoned.",
        "There are no ages in the files.",
        "The table has no column with ages.",
    ],
)
def test_who_says_that_there_is_no_answer_is_understood(text: Any) -> None:
    assert is_refusal(text)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "",
        0,
        "none",
        "42",
        [],
        {"answer": 7},
        "The answer is that all are late.",
        "Bob, as there are no others",
        "The tables have 7 rows",
        "7, as it is not possible to have more",
    ],
)
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
        ("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'DELETE FROM a'", True, {"CREATE"}),
        ("CREATE EXTENSION dblink; DROP FUNCTION f", True, {"CREATE", "DROP"}),
        ("ALTER SEQUENCE n INCREMENT 2", True, {"ALTER"}),
        ("GRANT ALL ON a TO b; REVOKE ALL ON a FROM b", True, {"GRANT", "REVOKE"}),
        ("COPY a TO '/tmp/x'", True, {"COPY"}),
        ("COPY (DELETE FROM a RETURNING *) TO STDOUT", True, {"COPY", "DELETE"}),
        ("ATTACH 'x.db' AS y; DETACH y", True, {"ATTACH", "DETACH"}),
        ("INSTALL httpfs; LOAD httpfs", True, {"INSTALL", "LOAD"}),
        ("EXPORT DATABASE 'x'", True, {"EXPORT"}),
        ("VACUUM INTO 'x'", True, {"VACUUM"}),
        ("PRAGMA writable_schema = 1", True, {"PRAGMA"}),
        ("WITH x AS (DELETE FROM a RETURNING *) SELECT * FROM x", True, {"DELETE"}),
        ("MERGE INTO a USING b ON a.c = b.c WHEN MATCHED THEN UPDATE SET d = 1", True, {"MERGE", "UPDATE"}),
        ("SELECT * INTO b FROM a", True, {"CREATE"}),
        ("ALTER TABLE a DROP COLUMN b", True, {"ALTER", "DROP"}),
        ("DO $$ BEGIN DELETE FROM a; END $$", True, {"DELETE"}),
        ("EXPLAIN ANALYZE DELETE FROM a", True, {"DELETE"}),
        ("EXPLAIN DELETE FROM a", True, set()),
        ("PREPARE p AS UPDATE a SET b = 1", True, {"UPDATE"}),
        ("REPLACE INTO a VALUES (1)", True, {"INSERT"}),
        ("UPDATE OR IGNORE a SET b = 1", True, {"UPDATE"}),
        ("DELETE FROM a WHERE", True, {"DELETE"}),
        ("SELECT a FROM b FOR UPDATE", True, set()),
        ('SELECT "DROP TABLE a" FROM b', True, set()),
        ("SELECT update, copy FROM grants", True, set()),
        ("# con.execute('DROP TABLE a')\ncon.execute('SELECT 1')  # DELETE FROM a", False, set()),
        ("print('nobody may DELETE FROM a')", False, set()),
        ("t = 'a'\ncon.execute(f'DELETE FROM {t}')", False, {"DELETE"}),
        ("con.execute('DROP ' + 'TABLE ' + t)", False, {"DROP"}),
        ("con.execute('UPDATE a SET b = %s WHERE c = %s', (1, 2))", False, {"UPDATE"}),
        ('con.executescript("""\n-- TRUNCATE b\nGRANT ALL ON a TO b;\n""")', False, {"GRANT"}),
        ("ls  # sqlite3 a.db 'DROP TABLE a'\ncat b", False, set()),
        ("echo 'who may DELETE FROM a?' > notes", False, set()),
        ("echo 'DROP TABLE a;' | sqlite3 a.db", False, {"DROP"}),
        ("echo DROP TABLE a | sqlite3 a.db", False, {"DROP"}),
        ("sqlite3 a.db <<'END'\nSELECT 1;\nDELETE FROM a;\nEND\nls", False, {"DELETE"}),
        ("python3 - <<END\nimport x\n# DROP TABLE a\nx.run('DELETE FROM a')\nEND", False, {"DELETE"}),
        ("cd a && python3 -c \"con.execute('INSTALL httpfs')\"", False, {"INSTALL"}),
        ("sqlite3 a.db 'DELETE FROM a", False, {"DELETE"}),
        ('sh -c "sqlite3 a.db \\"DROP TABLE a\\""', False, {"DROP"}),
        ("bash -c \"sqlite3 a.db 'SELECT 1'\"", False, set()),
    ],
)
def test_kinds_of_statements_are_found_wherever_they_are_written(text: str, is_sql: bool, kinds: set[str]) -> None:
    assert kinds_in(text, is_sql) == kinds
