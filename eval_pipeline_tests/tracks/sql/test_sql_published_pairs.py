"""Scores of other benchmarks on published answers to BIRD's mini-dev, pair by pair beside the references."""

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from eval_pipeline.sandbox.sql import SqlRows
from eval_pipeline.tracks.sql.artefact import without_fence
from eval_pipeline.tracks.sql.evidence import runner
from eval_pipeline.tracks.sql.published import published_scores
from eval_pipeline_tests import outside
from eval_pipeline_tests.support import Lab
from eval_pipeline_tests.tracks.sql.importers.helpers import cases_of, run_import
from eval_pipeline_tests.tracks.sql.published_references import (
    Rows,
    bird_ex_reference,
    bird_f1_reference,
    defog_reference,
    spider_reference,
)

BIRD = outside.SQL / "bird_mini"
WIDEST = 6
"""Columns up to which all their orders are tried."""
LONGEST = 2_000

pytestmark = outside.needs(BIRD)


def results(lab: Lab, limit: int | None, models: str) -> Iterator[tuple[str, SqlRows, SqlRows]]:
    """The accepted query, and the results of an answer and of it, where both run."""
    made = run_import(lab, "bird", BIRD / "mini_dev_sqlite_even.json", BIRD / "column_statistics.json", limit=limit)
    golds = [case.turns[0].gold for case in cases_of(made)]
    for path in sorted(BIRD.glob(models)):
        for line in path.read_text().splitlines()[:limit]:
            answer = json.loads(line)
            gold = golds[answer["position"]]
            place = gold.database.path()
            assert place is not None
            mine, theirs = (
                runner().run_now(place, sql) for sql in (without_fence(answer["sql"]) or ";", gold.accepted[0])
            )
            if isinstance(mine, SqlRows) and isinstance(theirs, SqlRows):
                yield gold.accepted[0], mine, theirs


def compare(found: Iterator[tuple[str, SqlRows, SqlRows]]) -> Counter[str]:
    """How many pairs were compared by each score; fails at the first that differs."""
    compared: Counter[str] = Counter()
    for sql, one, other in found:
        mine, theirs = list(one.rows), list(other.rows)
        ours = published_scores(one, other, sql, False)
        references = {"bird_ex": bird_ex_reference(mine, theirs)}
        if max(len(mine), len(theirs)) <= LONGEST:
            references["bird_soft_f1"] = bird_f1_reference(mine, theirs)
        if len(other.columns) <= WIDEST:
            references["spider_execution"] = spider_reference(mine, theirs, "order by" in sql.lower())
        if _numbers(mine) and _numbers(theirs):
            references["defog_subset"] = defog_reference(mine, theirs, False)
        assert {name: ours[name] for name in references} == pytest.approx(references), (sql, mine[:5], theirs[:5])
        compared.update(references.keys())
        compared["right for BIRD"] += bool(references["bird_ex"])
    return compared


def _numbers(rows: Rows) -> bool:
    return all(isinstance(cell, int | float) for row in rows for cell in row)


def test_answers_have_the_scores_of_the_references(lab: Lab) -> None:
    found = compare(results(lab, 40, "predictions_gpt-4_*.jsonl"))
    assert found["bird_ex"] >= 35
    assert 0 < found["right for BIRD"] < found["bird_ex"]


@pytest.mark.soak
def test_all_answers_have_the_scores_of_the_references(lab: Lab) -> None:
    found = compare(results(lab, None, "predictions_*.jsonl"))
    print(dict(found))
    for score, least in (("bird_ex", 700), ("bird_soft_f1", 700), ("spider_execution", 700), ("defog_subset", 200)):
        assert found[score] >= least
