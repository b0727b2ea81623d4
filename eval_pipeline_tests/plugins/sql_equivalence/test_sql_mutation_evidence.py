"""What agreement is worth: the expected query's own mutants, and a fuzzer that looks ten times as long."""

import os
from collections import Counter
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from eval_pipeline_plugins.sql_equivalence.ladder import check
from eval_pipeline_plugins.sql_equivalence.queries.mutants import OPERATORS, mutants
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.sql_equivalence.search.evidence import LONGER, mutation_evidence
from eval_pipeline_tests.plugins.sql_equivalence import campaigns
from eval_pipeline_tests.plugins.sql_equivalence.brute_force import DATABASES
from eval_pipeline_tests.plugins.sql_equivalence.campaigns import mutant_campaign, reworded

SHOP = SqlSchema.from_ddl(
    "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT NOT NULL, joined DATE);"
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL REFERENCES customers (id), price REAL);"
)
GOLDS = (
    "SELECT name FROM customers WHERE city = 'Oslo' AND joined >= '2021-05-01'",
    "SELECT c.city, COUNT(*), ROUND(SUM(o.price), 2) FROM customers c JOIN orders o ON o.customer = c.id "
    "WHERE o.price > 10 GROUP BY c.city HAVING COUNT(*) >= 2",
    "SELECT DISTINCT city FROM customers WHERE name LIKE 'A%' OR id IN (3, 5)",
    "SELECT name FROM customers ORDER BY joined DESC, id LIMIT 3",
    "SELECT c.name FROM customers c LEFT JOIN orders o ON o.customer = c.id WHERE o.id IS NULL",
    "SELECT city FROM customers WHERE strftime('%Y', joined) = '2021' UNION SELECT name FROM customers",
    "SELECT MAX(price), AVG(price) FROM orders WHERE price BETWEEN 5 AND 20",
)


def evidence(sql: str, base: int = 32):
    return mutation_evidence(sql, SHOP, "sqlite", "sqlite", base)


@pytest.mark.parametrize("sql", GOLDS)
def test_every_mutant_is_another_text_that_can_be_read_back(sql):
    tree = sqlglot.parse_one(sql, dialect="sqlite")
    before = tree.sql(dialect="sqlite")
    found = mutants(tree)
    texts = [mutant.tree.sql(dialect="sqlite") for mutant in found]
    assert len(set(texts)) == len(texts) >= 2
    assert before not in texts
    assert tree.sql(dialect="sqlite") == before
    for text in texts:
        assert isinstance(sqlglot.parse_one(text, dialect="sqlite"), exp.Query)


def test_every_kind_of_mistake_is_made():
    made = {mutant.kind for sql in GOLDS for mutant in mutants(sqlglot.parse_one(sql, dialect="sqlite"))}
    assert made == set(OPERATORS)


@pytest.mark.parametrize("sql", GOLDS)
def test_databases_tell_the_mutants_apart(sql):
    found = evidence(sql)
    assert found is not None
    assert found.killed >= 2
    # A left join over a foreign key that is NOT NULL is no mistake.
    assert [words for words in found.survived if "left join" not in words] == []


def test_mutants_that_mean_the_same_survive_a_search_ten_times_as_long_and_are_listed():
    found = evidence("SELECT name FROM customers WHERE id = 3 LIMIT 1", base=4)
    assert found is not None
    assert found.tried == 4 * LONGER
    assert {"without LIMIT", "LIMIT 2"} <= set(found.survived)


def test_an_answer_that_is_a_mutant_which_nothing_tells_apart_is_weakly_agreed():
    found = check(
        "SELECT name FROM customers WHERE id = 3 LIMIT 2",
        "SELECT name FROM customers WHERE id = 3 LIMIT 1",
        SHOP,
        dialect="sqlite",
    )
    assert (found.verdict, found.rung, found.value) == ("weakly_agreed", "weakly_agreed", 1.0)
    assert "LIMIT 2" in found.evidence["reason"]
    assert "LIMIT 2" in found.evidence["mutants"]["survived"]


def test_agreement_says_how_many_mutants_it_is_founded_on():
    found = check(
        "SELECT c.name FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id)",
        GOLDS[4],
        SHOP,
        dialect="sqlite",
    )
    assert found.verdict == "agreed", found.evidence
    assert found.evidence["mutants"]["killed"] >= 1


PATIENCE_S = 120
"""On a busy machine ten seconds may not be enough for a search that is bounded by the number of its tries."""


def campaign(count: int, seed: int, databases: int, results: Path) -> None:
    """Mutants of golds: what is called the same, nobody else may tell apart, and no pair ends with an exception."""
    lines = mutant_campaign(count, seed, databases, results, PATIENCE_S)
    print(dict(Counter(line["verdict"] for line in lines)))
    print("refuted", dict(Counter(line["verdict"] for line in lines if line["refuted_by"] is not None)))
    assert len(lines) == count
    wrong = [line for line in lines if line["verdict"] in ("agreed", "equivalent") and line["refuted_by"] is not None]
    assert not wrong + [line for line in lines if line["fault"]]


def test_what_is_called_agreed_no_fuzzer_refutes(tmp_path, monkeypatch):
    results = tmp_path / "results.jsonl"
    campaign(8, 1, 30, results)
    told = results.read_text()
    monkeypatch.setattr(campaigns, "check", None)  # what has a line is not tried again
    campaign(8, 1, 30, results)
    assert results.read_text() == told


@pytest.mark.soak
def test_what_is_called_agreed_no_fuzzer_refutes_through_a_long_campaign(tmp_path):
    """EVAL_CAMPAIGN names a file of results with which an interrupted campaign goes on."""
    campaign(2_000, 2, DATABASES, Path(os.environ.get("EVAL_CAMPAIGN") or tmp_path / "results.jsonl"))


def rewrites(count: int) -> tuple[Counter[str], Counter[str]]:
    """Verdicts on sound rewrites of golds with data, and of golds without."""
    with_data, without = Counter[str](), Counter[str]()
    for rule, other, gold in reworded(count, seed=3):
        schema, data = gold.schema(), [gold.database] if gold.database else []
        found = check(other, gold.sql, schema, data, dialect="sqlite", time_limit_s=PATIENCE_S)
        (with_data if data else without)[found.verdict] += 1
        assert found.verdict != "different", (rule, other, gold.sql, found.evidence)
        if found.verdict in ("weakly_agreed", "undecided"):
            print(found.verdict, bool(data), rule, "|", found.evidence["reason"][:120], "|", gold.sql[:150])
    print("with data", dict(with_data), "without", dict(without))
    assert with_data.total() + without.total() == count
    return with_data, without


def test_sound_rewrites_are_never_different():
    rewrites(10)


@pytest.mark.soak
def test_sound_rewrites_are_never_different_through_a_long_campaign():
    with_data, without = rewrites(1_000)
    assert with_data["weakly_agreed"] + with_data["undecided"] <= 0.03 * with_data.total()
    assert without["undecided"] <= 0.05 * without.total()
