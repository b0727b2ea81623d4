"""Spider's exact match: golden cases by hand, and a reference over trees on pairs of Spider's queries."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from random import Random

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.sql_equivalence import SqlSchema
from eval_pipeline.sql_equivalence.queries.mutants import mutants
from eval_pipeline.tracks.sql.spider.match import spider_match
from eval_pipeline.tracks.sql.spider.reading import UnreadableError, read_query
from eval_pipeline.tracks.sql.spider.scores import PARTS
from eval_pipeline_tests import outside
from eval_pipeline_tests.goldens import golden
from eval_pipeline_tests.tracks.sql.spider_references import reference

SPIDER = outside.SQL / "spider"
GOLDEN = golden("sql_spider.yaml")
SCHEMA = SqlSchema.from_ddl(GOLDEN["schema"])


@pytest.mark.parametrize("case", GOLDEN["pairs"], ids=lambda case: case["source"])
def test_golden_pairs(case):
    found = spider_match(case["mine"], [case["gold"]], SCHEMA)
    assert found is not None
    wrong = case.get("wrong", [])
    assert [part for part in PARTS if not found.parts[part][0]] == [part for part in PARTS if part in wrong]
    assert found.exact is case.get("exact", not wrong)
    assert found.readable is case.get("readable", True)


@pytest.mark.parametrize("case", GOLDEN["difficulty"], ids=lambda case: case["source"])
def test_golden_levels(case):
    found = spider_match(case["gold"], [case["gold"]], SCHEMA)
    assert found is not None
    assert (found.difficulty, found.exact) == (case["level"], True)


@pytest.mark.parametrize("sql", GOLDEN["outside"])
def test_what_is_not_in_the_grammar_has_no_score_as_the_accepted_query_and_none_right_as_the_answer(sql):
    assert spider_match("SELECT name FROM singer", [sql], SCHEMA) is None
    found = spider_match(sql, ["SELECT name FROM singer"], SCHEMA)
    assert found is not None
    assert (found.exact, found.readable, found.parts["where"]) == (False, False, (True, 0, 0))


def test_the_accepted_query_that_fits_best_counts():
    found = spider_match("SELECT name FROM singer WHERE age > 3", ["SELECT x", "SELECT age FROM singer"], SCHEMA)
    assert found is not None
    assert not found.exact
    found = spider_match("SELECT age FROM singer", ["SELECT name FROM concert", "SELECT age FROM singer"], SCHEMA)
    assert found is not None
    assert found.exact


@given(st.text(alphabet="select from wher()*,.'\"ab1=<>!andior- nt", max_size=80))
def test_any_text_is_read_or_refused(text):
    for sql in (text, f"SELECT name FROM singer WHERE {text}"):
        try:
            read_query(sql, {"singer": ["name", "age"]})
        except UnreadableError:
            continue


def test_long_and_deep_texts_are_refused():
    for sql in ("SELECT name FROM (" * 5_000, "SELECT name FROM singer WHERE age IN (" * 200, "(" * 200_000):
        with pytest.raises(UnreadableError):
            read_query(sql, {"singer": ["name", "age"]})


def spider_pairs(of_each: int) -> Iterator[tuple[str, str, SqlSchema]]:
    """Spider's own pairs of a prediction and a gold, and golds with one mistake."""
    entries = json.loads(outside.given(SPIDER / "tables.json").read_text())
    schemas = {entry["db_id"]: SqlSchema.from_spider(entry) for entry in entries}
    for line in (SPIDER / "testsuite_pairs_sample.jsonl").read_text().splitlines():
        pair = json.loads(line)
        yield pair["predict"], pair["gold"], schemas[pair["db_id"]]
    rng = Random(19)
    for case in json.loads((SPIDER / "dev_sample.json").read_text()):
        found = mutants(sqlglot.parse_one(case["query"], dialect="sqlite"))
        for one in rng.sample(found, min(of_each, len(found))):
            yield _as_models_write(one.tree.sql(dialect="sqlite")), case["query"], schemas[case["db_id"]]


def _as_models_write(sql: str) -> str:
    """What sqlglot prints is not in the grammar: NOT before the column, NULLS FIRST."""
    sql = re.sub(r"NOT ([\w.]+) (IN|LIKE|BETWEEN)\b", r"\1 NOT \2", sql)
    return re.sub(r" NULLS (FIRST|LAST)", "", sql)


def compare(pairs: Iterable[tuple[str, str, SqlSchema]]) -> Counter[str]:
    """How many pairs were compared; fails at the first on which the two do not agree."""
    compared: Counter[str] = Counter()
    for mine, gold, schema in pairs:
        expected, found = reference(mine, gold, schema), spider_match(mine, [gold], schema)
        assert expected is not None and found is not None, gold
        ours = {part: same for part, (same, _, _) in found.parts.items()} | {"exact": found.exact}
        assert ours == expected, (mine, gold)
        compared["pairs"] += 1
        compared["exact"] += found.exact
        compared["readable"] += found.readable
    return compared


@outside.needs(SPIDER)
def test_the_reference_agrees_on_spiders_pairs_and_on_mutants():
    compared = compare(islice(spider_pairs(2), 520))
    assert compared["pairs"] >= 500
    assert 0 < compared["exact"] < compared["readable"] < compared["pairs"]


@pytest.mark.soak
@outside.needs(SPIDER)
def test_the_reference_agrees_on_many_mutants():
    print(dict(compare(spider_pairs(40))))
