"""SQL queries that return a report's figures from the published store."""

from eval_pipeline.core.model import Partition


def where(partition: Partition, alias: str = "") -> str:
    """Returns the condition that selects an evaluation's rows of a table."""
    lead = f"{alias}." if alias else ""
    return (
        f"{lead}suite = {literal(partition.suite)} AND {lead}model_version = {literal(partition.model_version)} "
        f"AND {lead}eval_date = DATE '{partition.eval_date.isoformat()}'"
    )


def literal(text: str) -> str:
    """Returns a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def statistics_query(partition: Partition, condition: str = "") -> str:
    """Returns the query for rows of `statistics`."""
    also = f" AND {condition}" if condition else ""
    return (
        "SELECT metric, split, split_value, n, clusters, mean, se, low, high, failures, mean_without_failures, reason "
        f"FROM statistics WHERE {where(partition)}{also}"
    )


def table_query(partition: Partition, table: str, columns: str = "*", rest: str = "") -> str:
    """Returns the query for an evaluation's rows of any table; `rest` is added after the condition."""
    return f"SELECT {columns} FROM {table} WHERE {where(partition)}{' ' + rest if rest else ''}"


def extremes_query(partition: Partition, column: str, rows: int) -> str:
    """Returns the query for the turns with the highest values of a column."""
    return table_query(
        partition,
        "turn_results",
        "turn_id, tokens, usd, latency_ms, attempts, correct, complexity, question",
        f"AND {column} IS NOT NULL ORDER BY {column} DESC, turn_id, sample LIMIT {rows}",
    )


def explain_query(partition: Partition, turn_id: str) -> str:
    """Returns the query for everything about one turn."""
    day = f"on_date := DATE '{partition.eval_date.isoformat()}'"
    return f"SELECT * FROM explain_turn({literal(turn_id)}, {literal(partition.model_version)}, {day})"
