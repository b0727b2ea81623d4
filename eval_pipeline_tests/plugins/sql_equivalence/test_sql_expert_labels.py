"""NL2SQL-Bugs: experts labelled queries to one question right or wrong. Are the wrong ones told from the right ones?

Generated databases alone decide; the data of BIRD are not here.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from random import Random
from typing import Any

import pytest

from eval_pipeline_plugins.sql_equivalence.ladder import Equivalence, check
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_tests import outside

BUGS = outside.SQL / "nl2sql_bugs"
LEAST_TOLD = 0.9


@dataclass(frozen=True)
class Labelled:
    """Two queries to one question; the expected one is right, and so is the other if no errors are named."""

    database: str
    generated: str
    expected: str
    errors: tuple[str, ...]


@lru_cache(maxsize=16)
def schema(database: str) -> SqlSchema:
    told = json.loads((BUGS / "schema_dev.json").read_text())[database]
    return SqlSchema.from_ddl("\n".join(f"{table['ddl']};" for table in told["tables"].values()), "sqlite")


def pairs() -> Iterator[Labelled]:
    """Each wrong query with each right one, and each right one with the other right ones."""
    questions: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in json.loads(outside.given(BUGS / "half.json").read_text()):
        questions.setdefault((row["db_id"], row["question"]), []).append(row)
    for (database, _), rows in questions.items():
        right = [row["sql"] for row in rows if row["label"]]
        for row in rows:
            if not row["label"]:
                errors = tuple(sorted({error["error_type"] for error in row["error_types"]}))
                yield from (Labelled(database, row["sql"], expected, errors) for expected in right)
        yield from (Labelled(database, one, other, ()) for one, other in combinations(right, 2))


def compared(found: list[Labelled]) -> Iterator[tuple[Labelled, Equivalence]]:
    for pair in found:
        yield pair, check(pair.generated, pair.expected, schema(pair.database), dialect="sqlite", time_limit_s=120)


def test_wrong_queries_are_told_from_right_ones():
    wrong = [pair for pair in pairs() if pair.errors and pair.database == "superhero"]
    found = [told.verdict for _, told in compared(Random(0).sample(wrong, 5))]
    assert found == ["different"] * 5


@pytest.mark.soak
def test_nearly_all_wrong_queries_are_told_from_right_ones():
    verdicts: Counter[tuple[str, str]] = Counter()
    for pair, told in compared(list(pairs())):
        verdicts["wrong" if pair.errors else "right", told.verdict] += 1
        if (told.verdict != "different") == bool(pair.errors):
            print(f"{told.verdict} {pair.errors}\n  {pair.database}: {pair.generated}\n  {pair.expected}")
    print(dict(verdicts))
    wrong = sum(count for (label, _), count in verdicts.items() if label == "wrong")
    assert verdicts["wrong", "different"] >= LEAST_TOLD * wrong
