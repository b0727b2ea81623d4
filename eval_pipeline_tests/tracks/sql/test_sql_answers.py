"""Reading responses and recorded predictions into queries."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.model import ErrorClass
from eval_pipeline.tracks.base import ArtefactError
from eval_pipeline_plugins.tracks.sql.responses.artefact import (
    LEVELS,
    SqlAnswer,
    parse_query,
    query_from_json,
    query_json,
    recorded_response,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"sql": "SELECT 1", "confidence": "high"}', SqlAnswer("SELECT 1", "high")),
        ('{"sql": "SELECT 1", "confidence": "LOW "}', SqlAnswer("SELECT 1", "low")),
        ('{"sql": "SELECT 1"}', SqlAnswer("SELECT 1")),
        ('{"sql": null, "reason": "no such table"}', SqlAnswer(None, None, "no such table")),
        ('{"sql": null, "confidence": "high", "reason": ""}', SqlAnswer(None)),
        ('Here it is:\n```json\n{"sql": "SELECT 1", "confidence": "medium"}\n```', SqlAnswer("SELECT 1", "medium")),
        ('{"sql": "SELECT \'}\'", "confidence": "high"} done', SqlAnswer("SELECT '}'", "high")),
    ],
)
def test_answers_are_found(text: str, expected: SqlAnswer) -> None:
    assert parse_query(text) == expected


@pytest.mark.parametrize(
    ("text", "error_class", "words"),
    [
        ("", ErrorClass.OTHER, "empty"),
        ('{"sql": "SELECT 1", "confidence": ', ErrorClass.SYNTAX, "does not parse"),
        ("SELECT 1", ErrorClass.SYNTAX, "no JSON"),
        ('{"query": "SELECT 1"}', ErrorClass.VALUE, "not an answer"),
        ('{"sql": 7}', ErrorClass.VALUE, "'sql' must be a text or null"),
        ('{"sql": " "}', ErrorClass.VALUE, "to decline, answer null"),
        ('{"sql": "SELECT 1", "confidence": "certain"}', ErrorClass.VALUE, "high, medium, low, found 'certain'"),
        ('{"sql": null, "reason": 3}', ErrorClass.VALUE, "'reason' must be a text"),
    ],
)
def test_what_is_no_answer_says_why(text: str, error_class: ErrorClass, words: str) -> None:
    with pytest.raises(ArtefactError) as raised:
        parse_query(text)
    assert raised.value.error_class == error_class
    assert words in raised.value.message


FENCED = [
    "```sql\nSELECT 1\n```",
    "```sql\nSELECT 1",
    "```SQLite\nSELECT 1",
    "```\nSELECT 1\n",
    "```sql SELECT 1```",
    "  ```sql\r\nSELECT 1\r\n```\r\n",
    "```sql\nSELECT 1\n```\nThis counts one.",
]


@pytest.mark.parametrize("text", FENCED)
def test_sql_in_a_fence_is_read_without_it_closed_or_not(text: str) -> None:
    assert parse_query(json.dumps({"sql": text})) == SqlAnswer("SELECT 1")
    assert parse_query(recorded_response({"sql": text}), recorded=True) == SqlAnswer("SELECT 1")


@pytest.mark.parametrize("text", ["Here it is:\n```sql\nSELECT 1", "```SQLite\nSELECT 1"])
def test_a_recorded_answer_may_end_before_its_fence_does(text: str) -> None:
    assert parse_query(text, recorded=True) == SqlAnswer("SELECT 1")


def test_a_text_that_only_holds_a_fence_is_left_alone() -> None:
    assert parse_query(json.dumps({"sql": "SELECT '```'"})) == SqlAnswer("SELECT '```'")
    assert parse_query(json.dumps({"sql": "```SELECT 1"})) == SqlAnswer("SELECT 1")


def test_a_recorded_answer_may_be_bare_sql() -> None:
    assert parse_query("SELECT 1 ", recorded=True) == SqlAnswer("SELECT 1")
    assert parse_query('{"sql": "SELECT 1"}', recorded=True) == SqlAnswer("SELECT 1")


@pytest.mark.parametrize(
    "text",
    [
        "-- all of them\nSELECT 1",
        "(SELECT 1)",
        "```sql\nSELECT 2\n```\nNo, rather:\n```sql\nSELECT 1\n```",
        'Sure:\n```\n{"sql": "SELECT 1"}\n```\nThat is all.',
        'Draft:\n```json\n{"sql": "SELECT 2"}\n```\nFinal:\n```json\n{"sql": "SELECT 1"}\n```',
        '~~~json\n{"sql": "SELECT 1"}\n~~~',
        '```json\r\n{"sql": "SELECT 1"}\r\n```',
        '{"sql": "SELECT\n1"}',
    ],
)
def test_a_recorded_answer_is_json_wherever_it_stands_or_sql(text: str) -> None:
    found = parse_query(text, recorded=True).sql
    assert found is not None
    assert found.removeprefix("-- all of them").strip("()").split() == ["SELECT", "1"]


@pytest.mark.parametrize("text", ["I would look at the customers.", "Sorry!", "42", "```python\nprint(1)\n```"])
def test_recorded_prose_is_no_sql(text: str) -> None:
    """Of a wrong field: the import has to say so, and not the database."""
    with pytest.raises(ArtefactError):
        parse_query(text, recorded=True)


queries = st.builds(
    SqlAnswer,
    st.text(min_size=1).filter(str.strip),
    st.sampled_from([None, *LEVELS]),
    st.text(max_size=20),
) | st.builds(lambda reason: SqlAnswer(None, None, reason), st.text(max_size=20))


@given(queries)
def test_what_is_written_down_is_read_back(query: SqlAnswer) -> None:
    assert query_from_json(query_json(query)) == query
    assert parse_query(json.dumps(query_json(query))) == query


@given(st.text(max_size=200))
def test_any_text_is_an_answer_or_an_error_of_the_model(text: str) -> None:
    with suppress(ArtefactError):
        assert isinstance(parse_query(text), SqlAnswer)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"response": "SELECT 1"}, SqlAnswer("SELECT 1")),
        ({"response": {"sql": "SELECT 1", "confidence": "low"}}, SqlAnswer("SELECT 1", "low")),
        ({"response": {"sql": None, "reason": "hostile"}}, SqlAnswer(None, None, "hostile")),
        ({"answer": "SELECT 1"}, SqlAnswer("SELECT 1")),
        ({"sql": " SELECT 1 ", "confidence": "high"}, SqlAnswer("SELECT 1", "high")),
        ({"answer": "SELECT 1", "confidence": "low", "reason": "a guess"}, SqlAnswer("SELECT 1", "low", "a guess")),
        ({"sql": None, "reason": "hostile"}, SqlAnswer(None, None, "hostile")),
        ({"reason": "hostile"}, SqlAnswer(None, None, "hostile")),
    ],
)
def test_predictions_are_read(row: dict[str, Any], expected: SqlAnswer) -> None:
    assert parse_query(recorded_response(row), recorded=True) == expected


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({}, "needs 'response', 'sql', 'answer'"),
        ({"confidence": "high"}, "needs 'response', 'sql', 'answer'"),
        ({"sql": "SELECT 1", "confidence": "sure"}, "must be one of high, medium, low, found 'sure'"),
        ({"sql": "SELECT 1", "reason": 3}, "'reason' must be text, found 3"),
        ({"answer": 3}, "must be SQL, found 3"),
        ({"response": 3}, "must be text or an object with 'sql'"),
        ({"response": {"query": "SELECT 1"}}, "must be text or an object with 'sql'"),
    ],
)
def test_predictions_of_another_form_are_refused(row: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        recorded_response(row)


@pytest.mark.parametrize("answer", [" ", "", None])
def test_an_empty_recorded_answer_is_no_answer(answer: str | None) -> None:
    assert recorded_response({"answer": answer}) == ""
