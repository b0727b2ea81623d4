"""A small stall with two tables, cases about it, and what the metrics say of responses to them."""

import asyncio
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from eval_pipeline.core.model import Attempt, Case, Response
from eval_pipeline.sandbox.returned.outcomes import Measurement
from eval_pipeline.stages.attempts.ask import parse_response, run_artefact
from eval_pipeline.stages.scoring.metric_runner import MetricRunner
from eval_pipeline_plugins.tracks.pandas_code.cases.source import PandasShared, read_tables
from eval_pipeline_plugins.tracks.pandas_code.responses.artefact import fenced
from eval_pipeline_plugins.tracks.pandas_code.running.execute import PandasExecutor
from eval_pipeline_plugins.tracks.pandas_code.running.performance import Measured
from eval_pipeline_plugins.tracks.pandas_code.track import TRACK
from eval_pipeline_tests.support import Lab

FRUIT = """\
fruit,city,amount,sold_on
apple,Oslo,3,2024-01-05
pear,Oslo,5,2024-01-06
apple,Bergen,8,2024-02-01
plum,,20,2024-02-03
apple,Oslo,4,2024-01-07
fig,Lund,9,2024-02-05
"""
CITIES = "city,country\nOslo,NO\nBergen,NO\nLund,SE\n"
TOTALS = {
    "id": "totals",
    "tables": "sold",
    "turns": [
        {
            "question": "What is the total amount per fruit, sorted by amount descending?",
            "code": """\
totals = df.groupby("fruit")["amount"].sum().reset_index()
result = totals.sort_values("amount", ascending=False)
""",
        }
    ],
    "tags": ["group"],
}
LARGEST = {
    "id": "largest",
    "tables": "sold",
    "turns": [
        {
            "question": "Give fruit and amount of the top 2 sales by amount where the city is Oslo and the amount is "
            "greater than 1.",
            "code": """\
wanted = (df["city"] == "Oslo") & (df["amount"] > 1)
result = df[wanted].nlargest(2, "amount")[["fruit", "amount"]]
""",
        }
    ],
}
TALK = {
    "id": "talk",
    "turns": [
        {"question": "How many sales were made in Oslo?", "code": 'result = int((sold["city"] == "Oslo").sum())'},
        {
            "question": "Join sold and cities on city, and count them per country.",
            "code": 'result = sold.merge(cities, on="city").groupby("country").size()',
        },
    ],
}
CASES = (TOTALS, LARGEST, TALK)


needs_sandbox = pytest.mark.usefixtures("working_sandbox")


def write_stall(folder: Path) -> Path:
    """A suite's folder with the tables of the stall."""
    place = folder / "tables"
    place.mkdir(parents=True, exist_ok=True)
    (place / "sold.csv").write_text(FRUIT)
    (place / "cities.csv").write_text(CITIES)
    return folder


def stall_lab(lab: Lab, *cases: dict[str, Any], **options: Any) -> Lab:
    """A home with the suite `stall`."""
    write_stall(lab.home.data / "suites" / "stall")
    lab.suite("stall", cases or CASES, track="pandas", options=options)
    return lab


def shared(folder: Path, **options: Any) -> PandasShared:
    """The stall's tables as its cases share them."""
    return read_tables(write_stall(folder), options)


def read(raw: dict[str, Any], found: PandasShared) -> Case:
    """A case of the suite `stall`."""
    return TRACK.read_case(raw, "stall", "cases.yaml", 1, found)


def attempt(case: Case, text: str, turn: int = 0, *, number: int = 0, recorded: bool = False) -> Attempt:
    """What the pipeline makes of a response to a turn of a case."""
    artefact, error = parse_response(TRACK, text, recorded=recorded)
    outcome = asyncio.run(run_artefact(PandasExecutor(), case, artefact, error))
    return Attempt(case.turns[turn].id, 0, number, "", Response(text), None, artefact, outcome)


def unmeasured() -> AbstractContextManager[object]:
    """What code costs is not measured, which takes longer than all else: every answer costs what the reference does."""
    cost = Measurement(0.001, 1, 1)
    return patch("eval_pipeline_plugins.tracks.pandas_code.running.evidence.measure", return_value=Measured(cost, cost))


def scores(case: Case, *texts: str, turn: int = 0, recorded: bool = False, measured: bool = False) -> dict[str, Any]:
    """The plain values of every metric on a response, or on a generation and the recovery attempts after it."""
    (found,) = scores_of([(case, turn, texts)], recorded=recorded, measured=measured)
    return found


def scores_of(
    said: Iterable[tuple[Case, int, Iterable[str]]], *, recorded: bool = False, measured: bool = False
) -> list[dict[str, Any]]:
    """The values for many turns, of which the linter looks at all together."""
    tried = [
        (
            case,
            case.turns[turn],
            [attempt(case, text, turn, number=n, recorded=recorded) for n, text in enumerate(texts)],
        )
        for case, turn, texts in said
    ]
    with nullcontext() if measured else unmeasured():
        gathered = TRACK.gather_all([(case, asked, attempts[-1]) for case, asked, attempts in tried])
    values = [TRACK.values(*of_turn, found) for of_turn, found in zip(tried, gathered, strict=True)]
    plain = MetricRunner(TRACK.metrics).run(values).plain
    return [{name: found[place] for name, found in plain.items()} for place in range(len(tried))]


def answer(code: str) -> str:
    """A response that gives the code."""
    return fenced(code)
