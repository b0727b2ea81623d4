"""Makes small changes to databases on which queries return something: a NULL, one row more, one row less."""

from collections.abc import Iterator, Sequence
from random import Random

from eval_pipeline_plugins.sql_equivalence.generated.checks import Checks
from eval_pipeline_plugins.sql_equivalence.generated.mining import ColumnName
from eval_pipeline_plugins.sql_equivalence.generated.references import GeneratedDatabase, References, Row
from eval_pipeline_plugins.sql_equivalence.schema.parts import SqlTable
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema

_MOST = 32


def variations(
    databases: Sequence[GeneratedDatabase],
    schema: SqlSchema,
    used: set[ColumnName],
    checks: Checks,
    references: References,
    full: Sequence[GeneratedDatabase] = (),
) -> Iterator[GeneratedDatabase]:
    """Yields databases that differ from the given ones by one change; all constraints still hold.

    Each nullable column that the queries use is NULL in one row of one of them. Each table has one row less in one of
    them, and, if no key forbids it, a repeated row in another. A NULL changes a result most clearly if rows can get
    lost by it, so it is put into the databases of `full`, if there are any.
    """
    changes: list[tuple[SqlTable, int | None, bool]] = []
    for table in schema.tables:
        keyed = {name.lower() for key in (table.primary_key, *table.unique) for name in key}
        for place, column in enumerate(table.columns):
            name = column.name.lower()
            if column.nullable and not column.generated and name not in keyed and (table.name.lower(), name) in used:
                changes.append((table, place, False))
        changes += [(table, None, False), *([] if keyed else [(table, None, True)])]
    for number, (table, where, twice) in enumerate(changes[:_MOST] if databases else ()):
        for turn in (0, 1):
            bases = full if where is not None and full else databases
            base = bases[(2 * number + turn) % len(bases)]
            rows = _changed(base.get(table.name.lower(), []), where, Random(2 * number + turn), twice=twice)
            if rows is not None and (where is None or all(checks.keeps(table, row) for row in rows)):
                yield references.repaired({**base, table.name.lower(): rows})


def _changed(rows: list[Row], place: int | None, rng: Random, *, twice: bool) -> list[Row] | None:
    """Returns the rows with one of them changed; None if no row can be changed."""
    if not rows:
        return None
    chosen = rng.randrange(len(rows))
    row = rows[chosen]
    if place is None:
        return [*rows, row] if twice else [*rows[:chosen], *rows[chosen + 1 :]]
    return [*rows[:chosen], (*row[:place], None, *row[place + 1 :]), *rows[chosen + 1 :]]
