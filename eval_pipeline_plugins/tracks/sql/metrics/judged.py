"""A judge's opinion on whether the query means the same as the expected one."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from eval_pipeline.core.home import find_home
from eval_pipeline.core.model import MetricResult
from eval_pipeline_plugins.tracks.sql.metrics.tables_read import NO_SQL_EXPECTED

if TYPE_CHECKING:
    from eval_pipeline.judge.judgement import Judge, Judgement
    from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema

IDENTICAL = "Queries are identical"


async def query_correctness(
    generated: str,
    expected: str,
    schema: "SqlSchema | Mapping[str, Mapping[str, str]] | str | None" = None,
    judge: "Judge | None" = None,
) -> MetricResult:
    """Asks the judge: 1.0 for the same meaning, 0.5 for partly right, 0.0 for wrong, with its reason.

    Args:
        generated: what a model wrote.
        expected: what is right. The same text (ignoring white space, case of keywords and a final semicolon) gets 1.0
            without asking.
        schema: of the database, as an object, as a plain `{table: {column: type}}` mapping or as DDL; the judge sees
            it.
        judge: an open judge, see `eval_pipeline.judge.judge.open_judge`; default: a Claude model is opened for this
            pair.

    Returns:
        The value is None if no judge is configured. It is 0.0, with an `error`, if the judge failed or took too long.
    """
    from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
    from eval_pipeline_plugins.sql_equivalence.syntax.text import identical

    if identical(generated, expected):
        return MetricResult(1.0, reason=IDENTICAL)
    ddl = schema if schema is None or isinstance(schema, str) else SqlSchema.of(schema).ddl()
    if judge is not None:
        return _result(await judge.judge(generated, expected, ddl))
    from eval_pipeline.judge.judge import open_judge
    from eval_pipeline.judge.judgement import DEFAULT_JUDGE

    async with open_judge(DEFAULT_JUDGE, find_home().judgements) as opened:
        return _result(await opened.judge(generated, expected, ddl))


def _result(said: "Judgement") -> MetricResult:
    details = {"model": said.model, "choice": said.choice} if said.model else None
    return MetricResult(said.value, reason=said.reason or None, details=details, error=said.error)


def _of_turn(judgement: Mapping[str, Any], should_pass: bool) -> MetricResult:
    """Reads the recorded judgement, so that rescoring asks no model."""
    if not should_pass:
        return MetricResult(None, reason=NO_SQL_EXPECTED)
    if not judgement:
        return MetricResult(None, reason="not judged")
    details = {name: judgement[name] for name in ("model", "choice", "expected", "trace") if judgement[name]}
    return MetricResult(
        judgement["value"], reason=judgement["reason"] or None, details=details, error=judgement["error"]
    )
