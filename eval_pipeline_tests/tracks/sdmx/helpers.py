"""A small catalogue, and running a response through the whole track as the stages do."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from eval_pipeline.core.model import Attempt, Case, Evidence, Json, Response, Turn
from eval_pipeline.operations.imports.importing import ImportedSuite, import_suite
from eval_pipeline.stages.attempts.ask import parse_response, run_artefact
from eval_pipeline.stages.scoring.metric_runner import MetricRunner
from eval_pipeline.suites.cases import read_suite
from eval_pipeline.suites.headers import read_header
from eval_pipeline_plugins.tracks.sdmx.catalogue.catalogue import Catalogue
from eval_pipeline_plugins.tracks.sdmx.catalogue.term_lists import ListedTerm, with_listed, write_terms
from eval_pipeline_plugins.tracks.sdmx.damage import selection_response
from eval_pipeline_plugins.tracks.sdmx.responses.selection import Pair, Selection, merged
from eval_pipeline_plugins.tracks.sdmx.search.retrieval import Retriever
from eval_pipeline_plugins.tracks.sdmx.track import TRACK
from eval_pipeline_tests.support import SHIPPED, Lab, Puppet

SAMPLE = SHIPPED / "suites" / "sdmx_sample"

INDICATORS = {
    "GDP": "gross domestic product",
    "GDPPC": "GDP per capita",
    "GDP_CONST": "gross domestic product constant prices",
    "POP": "population",
}
COUNTRIES = {
    "MEX": "Mexico",
    "ARG": "Argentina",
    "EST": "Estonia",
    "LVA": "Latvia",
    "LTU": "Lithuania",
}
LISTED = [
    *(ListedTerm("D:ONE", "INDICATOR", id, name, "One") for id, name in INDICATORS.items()),
    *(ListedTerm(found, "COUNTRY", id, name) for found in ("D:ONE", "D:TWO") for id, name in COUNTRIES.items()),
]

Written = Mapping[str, Sequence[str | Mapping[str, str]]]
"""`DATA_SET DIMENSION` → terms, as the golden files have them."""


def retriever(most: int = 20) -> Retriever:
    """Two data sets: ONE with indicators and countries, TWO with countries alone."""
    return Retriever(Catalogue(with_listed([], LISTED)), most, 20)


def selection(written: Written) -> Selection:
    """A selection as the golden files write it."""
    return merged((tuple(place.split(" ")), [_pair(term) for term in terms]) for place, terms in written.items())  # type: ignore[misc]


def _pair(term: str | Mapping[str, str]) -> Pair:
    if isinstance(term, str):
        return term, {**INDICATORS, **COUNTRIES}[term]
    return term["id"], term["name"]


def response(written: Written) -> str:
    """A selection as a model would write it, with what the golden file repeats."""
    entries = [
        {
            "dataset_id": place.split(" ")[0],
            "dimensions": [
                {
                    "dimension_name": place.split(" ")[1],
                    "values": [dict(zip(("id", "name"), _pair(term), strict=True)) for term in terms],
                }
            ],
        }
        for place, terms in written.items()
    ]
    return json.dumps({"indicator_selection": entries})


def raw_case(*turns: tuple[str, Written], **more: Any) -> dict[str, Any]:
    """A case in the suite's format, from (question, target) pairs."""
    conversation: list[Json] = [
        {"role": "user", "content": question, "target": json.loads(selection_response(selection(target)))}
        for question, target in turns
    ]
    return {"id": "c1", "name": "case one", "conversation": conversation, **more}


def case_of(*turns: tuple[str, Written], most: int = 20) -> Case:
    return TRACK.read_case(raw_case(*turns), "suite", "cases/one.yaml", 1, retriever(most))


def attempt_at(case: Case, turn: Turn, text: str) -> Attempt:
    """The attempt that a response makes, executed."""
    artefact, error = parse_response(TRACK, text)

    async def run() -> Attempt:
        async with TRACK.executor() as executor:
            outcome = await run_artefact(executor, case, artefact, error)
        return Attempt(turn.id, 0, 0, "", Response(text), None, artefact, outcome)

    return asyncio.run(run())


def evidence_of(case: Case, turn: Turn, attempt: Attempt) -> tuple[Evidence, ...]:
    return TRACK.gather(case, turn, attempt)


def measured(case: Case, turn: Turn, attempt: Attempt) -> dict[str, Any]:
    """Every metric of the track on one attempt."""
    values = TRACK.values(case, turn, [attempt], evidence_of(case, turn, attempt))
    scored = MetricRunner(TRACK.metrics).run([values])
    assert not scored.failures
    return {name: found[0] for name, found in scored.plain.items()}


def scores(case: Case, turn: Turn, text: str) -> dict[str, Any]:
    return measured(case, turn, attempt_at(case, turn, text))


@cache
def sample_cases() -> tuple[Case, ...]:
    """The cases of the shipped suite."""
    with patch("eval_pipeline.suites.cases.rehearse"):
        return read_suite(read_header(SAMPLE)).cases


def sdmx_lab(
    lab: Lab, asked: Mapping[str, Any], said: Mapping[str, Written], terms: Sequence[ListedTerm] = LISTED, **header: Any
) -> Lab:
    """A home with the suite `small`, and a model that selects what `said` says of each turn (`one#0`)."""
    folder = lab.suite(
        cases=[{**raw, "id": id, "name": f"case {id}"} for id, raw in asked.items()], track="sdmx", **header
    )
    (folder / "structures").mkdir()
    write_terms(folder / "structures" / "terms.csv", terms)
    lab.versions({"name": "puppet", "provider": "puppet"})
    Puppet.answer = staticmethod(lambda call: response(said[f"{call.case_id}#{call.turn_index}"]))
    return lab


def imported(lab: Lab, source: Path, *structures: Path, suite: str = "foreign") -> ImportedSuite:
    """What an import of StatGPT's cases says of itself."""
    return import_suite(lab.workspace(), "statgpt", source, suite, None, structures)
