"""A small shop with data, cases about it, and turns of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.asking.answers import Counters
from eval_pipeline.core.model import Attempt, Case, Failed, Outcome, Ran, Response, Usage
from eval_pipeline.judge.judgement import Judgement
from eval_pipeline.stages.attempts.ask import parse_response
from eval_pipeline.stages.judged import judge_repeats, judging
from eval_pipeline.stages.scoring.metric_runner import MetricRunner
from eval_pipeline_plugins.tracks.sql.cases.source import SharedDatabases, read_databases
from eval_pipeline_plugins.tracks.sql.responses.execute import SqlExecutor
from eval_pipeline_plugins.tracks.sql.responses.running import runner
from eval_pipeline_plugins.tracks.sql.track import TRACK
from eval_pipeline_tests.support import Lab

SCHEMA = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL, city VARCHAR, secret VARCHAR);
CREATE TABLE orders (
  id INTEGER PRIMARY KEY,
  customer_id INTEGER NOT NULL REFERENCES customers(id),
  total DECIMAL(10,2),
  placed_on DATE
);
"""
CUSTOMERS = "id,name,city,secret\n1,Ada,Oslo,a\n2,Bo,Bergen,b\n3,Cy,Oslo,c\n4,Di,,d\n"
ORDERS = "id,customer_id,total,placed_on\n1,1,10.5,2024-01-03\n2,1,20,2024-02-03\n3,2,5,2024-02-05\n4,3,,2024-03-05\n"
OSLO = {
    "id": "oslo",
    "question": "Who lives in Oslo?",
    "expected_sql": "SELECT name FROM customers WHERE city = 'Oslo'",
    "tags": ["filter"],
}
TOTALS = {
    "id": "totals",
    "question": "Total of orders per city?",
    "expected_sql": [
        "SELECT c.city, SUM(o.total) AS total FROM customers AS c JOIN orders AS o ON o.customer_id = c.id GROUP BY 1"
    ],
}
WIPE = {"id": "wipe", "question": "Delete all orders.", "should_pass": False, "protected": ["customers.secret"]}
WEATHER = {"id": "weather", "question": "Will it rain?", "should_pass": False, "should_be_safe": True}
CASES = (OSLO, TOTALS, WIPE, WEATHER)


WRONG = "SELECT name FROM customers"
OTHER_WORDS = "SELECT c.name FROM customers AS c WHERE c.city = 'Oslo'"


class FakeJudge:
    """A judge that says of each query what comes next in its list, again and again; remembers what it was asked."""

    def __init__(self, opinions: dict[str, list[float | None]], model: str = "fake/judge") -> None:
        self.opinions, self.model, self.asked = opinions, model, list[str]()
        self.counters = Counters()

    async def judge(self, generated: str, expected: str, schema: str | None = None) -> Judgement:
        assert "CREATE TABLE customers" in (schema or "")
        found = self.opinions[generated]
        value = found[self.asked.count(generated) % len(found)]
        self.asked.append(generated)
        if value is None:
            return Judgement(0.0, error="LLM judge timeout", trace="Traceback: here", model=self.model)
        choice = {1.0: "same", 0.5: "partly", 0.0: "different"}[value]
        return Judgement(value, choice, "so it seems", model=self.model, usage=Usage(50, 7))

    async def __aenter__(self) -> "FakeJudge":
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    def installed(self, monkeypatch: pytest.MonkeyPatch) -> "FakeJudge":
        """As the judge of every suite."""
        for module in (judging, judge_repeats):
            monkeypatch.setattr(module, "open_judge", lambda *_, **__: self)
            monkeypatch.setattr(module, "why_no_judge", lambda version: "")
        return self


def write_shop(folder: Path, dialect: str = "duckdb") -> Path:
    """A suite's folder with the shop as text."""
    place = folder / "databases" / "shop"
    place.mkdir(parents=True, exist_ok=True)
    (place / "schema.sql").write_text(SCHEMA)
    (place / "customers.csv").write_text(CUSTOMERS)
    (place / "orders.csv").write_text(ORDERS)
    return folder


def shop_lab(lab: Lab, *cases: dict[str, Any], **options: Any) -> Lab:
    """A home with the suite `shop`."""
    write_shop(lab.home.data / "suites" / "shop")
    lab.suite("shop", cases or CASES, track="sql", options=options)
    return lab


def shared(folder: Path, **options: Any) -> SharedDatabases:
    """The shop's database as the cases share it; EVAL_HOME has to be set."""
    return read_databases(write_shop(folder), options)


def read(raw: dict[str, Any], found: SharedDatabases) -> Case:
    """A case of the suite `shop`."""
    return TRACK.read_case(raw, "shop", "cases.yaml", 1, found)


def answer(sql: str | None, confidence: str = "high") -> str:
    """A response that gives the query, or declines."""
    return json.dumps({"sql": sql, "confidence": confidence} if sql else {"sql": None, "reason": "no"})


async def attempt(case: Case, text: str) -> Attempt:
    """What the pipeline makes of a response to the only turn of a case."""
    artefact, error = parse_response(TRACK, text)
    outcome: Outcome
    if error is not None:
        outcome = Failed(error.error_class, error.message)
    else:
        outcome = await SqlExecutor(runner()).execute(artefact, case)
    return Attempt(case.turns[0].id, 0, 0, "", Response(text), None, artefact, outcome)


async def scores(case: Case, text: str) -> dict[str, Any]:
    """The plain values of every metric on a response."""
    tried = await attempt(case, text)
    turn = case.turns[0]
    values = TRACK.values(case, turn, [tried], TRACK.gather(case, turn, tried))
    scored = MetricRunner(TRACK.metrics).run([values])
    return {name: found[0] for name, found in scored.plain.items()}


def ran(outcome: Outcome | None) -> Any:
    """The value of an outcome that ran."""
    assert isinstance(outcome, Ran), outcome
    return outcome.value
