"""Whether the query reads the right tables."""

from collections.abc import Iterable

from eval_pipeline.core.model import MetricResult
from eval_pipeline_plugins.tracks.sql.cases.words import DEFAULT_DIALECT

NO_SQL_EXPECTED = "no SQL is expected"
NO_SQL = "no SQL was given"
CHANGES_DATA = "the task changes data: the states are compared"
NOT_PARSED = "does not parse"


def table_accuracy(generated: str, expected_tables: Iterable[str], dialect: str = DEFAULT_DIALECT) -> MetricResult:
    """Returns the Jaccard index of the query's base tables and the expected ones; 1.0 if both are empty.

    Case and quotes are ignored; a schema prefix counts only if the expectation has one.

    Args:
        generated: SQL; what does not parse, or is not a statement, gets the value 0.0 and the parser's message as
            `error`.
        expected_tables: `table` or `schema.table`.
        dialect: sqlglot's name of the dialect.
    """
    from eval_pipeline_plugins.sql_equivalence.syntax.parsing import SqlSyntaxError, parse_statement
    from eval_pipeline_plugins.sql_equivalence.syntax.tables_in import TableName, base_tables

    try:
        found = base_tables(parse_statement(generated, dialect))
    except SqlSyntaxError as error:
        return MetricResult(0.0, error=str(error))
    expected = {TableName.of(name.strip().replace('"', "").replace("`", "")) for name in expected_tables}
    unmatched = set(found)
    right = 0
    for name in sorted(expected, key=lambda name: not name.schema):
        match = next((f for f in unmatched if f.name == name.name and name.schema in ("", f.schema)), None)
        if match is not None:
            unmatched.discard(match)
            right += 1
    union = len(expected) + len(unmatched)
    details = {"generated": sorted(map(str, found)), "expected": sorted(map(str, expected))}
    return MetricResult(right / union if union else 1.0, details=details)


def _of_turn(
    generated: str | None, expected_tables: Iterable[str], dialect: str, should_pass: bool, changes_data: bool = False
) -> MetricResult:
    if not should_pass or changes_data:
        return MetricResult(None, reason=CHANGES_DATA if changes_data else NO_SQL_EXPECTED)
    if generated is None:
        return MetricResult(0.0, reason=NO_SQL)
    found = table_accuracy(generated, expected_tables, dialect)
    if found.error is not None:  # a wrong answer, not an error of the metric
        return MetricResult(0.0, NOT_PARSED, found.error)
    return found
