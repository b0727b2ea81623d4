"""Reading a response into a query, or into the refusal to write one."""

import re
from collections.abc import Mapping
from typing import Literal, get_args

from eval_pipeline.core.model import ErrorClass, Json
from eval_pipeline.core.values import value
from eval_pipeline.tracks.base import ArtefactError
from eval_pipeline.tracks.json_response import find_json

Confidence = Literal["high", "medium", "low"]
LEVELS: tuple[Confidence, ...] = get_args(Confidence)
FORM = '{"sql": "SELECT …", "confidence": "high"} or {"sql": null, "reason": "…"}'
_MOST = 200_000
_FENCE = re.compile(r"^[ \t]*+```[\w+-]*+[ \t]*+\n(.*?)^[ \t]*+```", re.MULTILINE | re.DOTALL)
_SQL = re.compile(
    r"--|/\*|\(|(?:SELECT|WITH|FROM|VALUES|TABLE|EXPLAIN|DESCRIBE|SHOW|SUMMARIZE|PIVOT|UNPIVOT|INSERT|UPDATE|DELETE|MERGE"
    r"|REPLACE|UPSERT|TRUNCATE|CREATE|ALTER|DROP|RENAME|COMMENT|ATTACH|DETACH|COPY|EXPORT|IMPORT|INSTALL|LOAD|PRAGMA|SET|RESET"
    r"|CALL|EXEC|EXECUTE|PREPARE|DEALLOCATE|DECLARE|GRANT|REVOKE|BEGIN|START|COMMIT|ROLLBACK|SAVEPOINT|VACUUM|ANALYZE"
    r"|REINDEX|CHECKPOINT|USE|KILL|DO)\b",
    re.IGNORECASE,
)
"""What a statement begins with, be it one that the validator will reject; prose does not."""


@value
class SqlAnswer:
    """What a model answered.

    Attributes:
        sql: None where it declined.
        confidence: in its SQL; None where it did not say.
        reason: why it declined, or what it remarked.
    """

    sql: str | None
    confidence: Confidence | None = None
    reason: str = ""

    @property
    def declined(self) -> bool:
        """Whether the model would not or could not write SQL."""
        return self.sql is None


def parse_query(text: str, *, recorded: bool = False) -> SqlAnswer:
    """The query in a response: JSON alone, in a fence, or with prose around it.

    A recorded answer may also be SQL without JSON: alone, or in a fence, of several the last.

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
    return SqlAnswer(sql, _confidence(confidence), reason or "")


def _bare_sql(text: str) -> str:
    """The SQL of a text that begins as SQL does, or of its last fence that does; empty where an answer is in JSON."""
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
    """The query as JSON, in the answer form."""
    if query.sql is None:
        return {"sql": None, "reason": query.reason}
    told: dict[str, Json] = {"sql": query.sql}
    told |= {"confidence": query.confidence} if query.confidence else {}
    return told | ({"reason": query.reason} if query.reason else {})


def query_from_json(told: Mapping[str, Json]) -> SqlAnswer:
    """The query that `query_json` wrote."""
    return SqlAnswer(told["sql"], told.get("confidence"), told.get("reason", ""))


def _invalid(message: str) -> ArtefactError:
    return ArtefactError(ErrorClass.VALUE, message)
