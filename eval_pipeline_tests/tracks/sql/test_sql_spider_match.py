"""Spider's exact match: golden cases by hand, and what a reference over trees said of pairs of Spider's queries."""

import json
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.tracks.sql.spider.match import PARTS, spider_match
from eval_pipeline_plugins.tracks.sql.spider.reading import UnreadableError, read_query
from eval_pipeline_tests import outside
from eval_pipeline_tests.goldens import golden

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


CHANGES = (
    *((" WHERE .*", ""), (" AND ", " OR "), (" OR ", " AND "), ("DISTINCT ", ""), ("max", "min"), (" = ", " >= ")),
    *((" [<>] ", " = "), (" (DESC|ASC)", ""), (" LIMIT .*", ""), ("NOT IN", "IN"), ("INTERSECT|UNION", "EXCEPT")),
    *(("HAVING .*", ""), ("count\\(", "sum("), (" ON .*? = ", " ON "), (" JOIN", " LEFT JOIN"), ("ORDER BY .*", "")),
    ("GROUP BY", "GROUP BY name,"),
)


def spider_pairs() -> Iterator[tuple[str, str, str]]:
    """Spider's own pairs of a prediction and a gold with the database, and golds with one change."""
    for line in (SPIDER / "testsuite_pairs_sample.jsonl").read_text().splitlines():
        pair = json.loads(line)
        yield pair["predict"], pair["gold"], pair["db_id"]
    for number, case in enumerate(json.loads((SPIDER / "dev_sample.json").read_text())):
        made = [re.sub(old, new, case["query"], count=1, flags=re.IGNORECASE) for old, new in CHANGES]
        for sql in [sql for sql in made if sql != case["query"]][number % 2 :: 2]:
            yield sql, case["query"], case["db_id"]


@outside.needs(SPIDER)
def test_partial_scores_of_spiders_pairs_and_of_changed_golds():
    entries = json.loads((SPIDER / "tables.json").read_text())
    schemas = {entry["db_id"]: SqlSchema.from_spider(entry) for entry in entries}
    expected = golden("sql_spider_pairs.yaml")["wrong"].split()
    for (mine, gold, database), wrong in zip(spider_pairs(), expected, strict=True):
        found = spider_match(mine, [gold], schemas[database])
        assert found is not None, gold
        same = [*(found.parts[part][0] for part in PARTS), found.exact]
        assert f"{sum((not one) << place for place, one in enumerate(same)):03x}" == wrong, (mine, gold, same)
