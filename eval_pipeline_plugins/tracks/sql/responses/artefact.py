"""Parses a response into a query, or into a refusal to write one."""

import re
from collections.abc import Mapping
from typing import Literal, get_args

from eval_pipeline.answers.json_text import find_json
from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import ErrorClass, Json
from eval_pipeline.core.reading.complaints import told_value
from eval_pipeline.core.values import value
from eval_pipeline.tracks.base import ArtefactError

Confidence = Literal["high", "medium", "low"]


LEVELS: tuple[Confidence, ...] = get_args(Confidence)


FORM = '{"sql": "SELECT …", "confidence": "high"} or {"sql": null, "reason": "…"}'


_MOST = 200_000


_FENCE = re.compile(r"^[ \t]*+```[\w+-]*+[ \t]*+\n(.*?)(?:^[ \t]*+```|\Z)", re.MULTILINE | re.DOTALL)


"""A Markdown fence. It need not be closed, because models that run out of tokens leave it open."""


_OPENED = re.compile(
    r"\s*+```(?:[\w+-]*+[ \t]*+\n|(?:sql|sqlite|duckdb|postgres|postgresql|mysql|tsql)\b)?", re.IGNORECASE
)


_SQL = re.compile(
    r"--|/\*|\(|(?:SELECT|WITH|FROM|VALUES|TABLE|EXPLAIN|DESCRIBE|SHOW|SUMMARIZE|PIVOT|UNPIVOT|INSERT|UPDATE|DELETE|MERGE"
    r"|REPLACE|UPSERT|TRUNCATE|CREATE|ALTER|DROP|RENAME|COMMENT|ATTACH|DETACH|COPY|EXPORT|IMPORT|INSTALL|LOAD|PRAGMA|SET|RESET"
    r"|CALL|EXEC|EXECUTE|PREPARE|DEALLOCATE|DECLARE|GRANT|REVOKE|BEGIN|START|COMMIT|ROLLBACK|SAVEPOINT|VACUUM|ANALYZE"
    r"|REINDEX|CHECKPOINT|USE|KILL|DO)\b",
    re.IGNORECASE,
)


"""Matches the beginning of any SQL statement, even one that the validator rejects, but not of prose."""


@value
class SqlAnswer:
    """The answer of a model.

    Attributes:
        sql: None if it declined.
        confidence: its confidence in the SQL; None if it stated none.
        reason: why it declined, or a remark.
    """

    sql: str | None
    confidence: Confidence | None = None
    reason: str = ""

    @property
    def declined(self) -> bool:
        """Whether the model refused to write SQL or could not."""
        return self.sql is None


def parse_query(text: str, *, recorded: bool = False) -> SqlAnswer:
    """Returns the query in a response: plain JSON, JSON in a fence, or JSON surrounded by prose.

    A recorded answer may also be SQL without JSON, either alone or in a fence (the last one, if there are several).

    Raises:
        ArtefactError: with its error class.
    """
    if recorded and (bare := _bare_sql(text)):
        return SqlAnswer(bare)
    found = find_json(text, lambda value: isinstance(value, dict) and "sql" in value, "an answer", FORM, _MOST)
    sql, confidence, reason = found["sql"], found.get("confidence"), found.get("reason")
    if sql is not None and not isinstance(sql, str):
        raise _invalid("'sql' must be a text or null")
    if reason is not None and not isinstance(reason, str):
        raise _invalid("'reason' must be a text")
    if sql is not None and not sql.strip():
        raise _invalid("'sql' is empty; to decline, answer null with a reason")
    if sql is None:
        return SqlAnswer(None, reason=reason or "")
    return SqlAnswer(without_fence(sql), _confidence(confidence), reason or "")


def without_fence(sql: str) -> str:
    """Returns the SQL inside a Markdown fence, closed or not; text without a fence is returned unchanged."""
    opened = _OPENED.match(sql)
    if opened is None:
        return sql
    inner = sql[opened.end() :]
    closed = inner.find("```")
    return (inner if closed < 0 else inner[:closed]).strip() or sql


def _bare_sql(text: str) -> str:
    """Returns a text that begins like SQL, or else its last fence that does; empty if the answer is in JSON."""
    text = text.strip()
    if _SQL.match(text):
        return text
    if '"sql"' in text:
        return ""
    fenced = [found[1].strip() for found in _FENCE.finditer(text)]
    return next((code for code in reversed(fenced) if _SQL.match(code)), "")


def _confidence(said: Json) -> Confidence | None:
    if said is None:
        return None
    word = said.strip().lower() if isinstance(said, str) else said
    for level in LEVELS:
        if word == level:
            return level
    raise _invalid(f"'confidence' must be one of {', '.join(LEVELS)}, found {said!r:.40}")


def query_json(query: SqlAnswer) -> Json:
    """Returns the query as JSON in the answer form."""
    if query.sql is None:
        return {"sql": None, "reason": query.reason}
    told: dict[str, Json] = {"sql": query.sql}
    told |= {"confidence": query.confidence} if query.confidence else {}
    return told | ({"reason": query.reason} if query.reason else {})


def query_from_json(told: Mapping[str, Json]) -> SqlAnswer:
    """Reads a query that `query_json` wrote."""
    return SqlAnswer(told["sql"], told.get("confidence"), told.get("reason", ""))


def _invalid(message: str) -> ArtefactError:
    return ArtefactError(ErrorClass.VALUE, message)


def recorded_response(row: Mapping[str, Json]) -> str:
    """Returns the response text in a row of recorded predictions.

    If there is `response`, it is the raw answer, as text or JSON. Otherwise `sql` or `answer` is the SQL, next to
    `confidence` and `reason`; a reason without SQL is a refusal.

    Raises:
        ValueError: with one sentence.
    """
    response = row.get("response")
    if isinstance(response, str):
        return response
    if isinstance(response, dict) and "sql" in response:
        return canonical_json(response)
    if response is not None:
        raise ValueError("'response' must be text or an object with 'sql'")
    if not {"sql", "answer", "reason"} & row.keys():
        raise ValueError(
            "a prediction of track sql needs 'response', 'sql', 'answer' (the SQL) or 'reason' (to decline)"
        )
    sql, confidence, reason = _text(row, "sql") or _text(row, "answer"), _text(row, "confidence"), _text(row, "reason")
    if confidence and confidence not in LEVELS:
        raise ValueError(f"'confidence' must be one of {', '.join(LEVELS)}, found '{confidence}'")
    if not sql and not reason:
        return ""
    told = {"sql": sql or None, "confidence": confidence, "reason": reason}
    return canonical_json({name: said for name, said in told.items() if said or name == "sql"})


def _text(row: Mapping[str, Json], name: str) -> str:
    """Returns a field's text without surrounding white space; empty if there is none."""
    value = row.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        what = "SQL" if name in ("sql", "answer") else "text"
        raise ValueError(f"'{name}' must be {what}, found {told_value(value)}")
    return value.strip()
