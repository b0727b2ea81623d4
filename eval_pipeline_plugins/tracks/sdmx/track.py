"""The track class, which connects indicator selection to the stages of an evaluation."""

from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.installed.plugins import Later
from eval_pipeline.core.model import Attempt, Evidence, Json, Outcome, Ran
from eval_pipeline.tracks.base import ArtefactError, Executor, Task, ValidationRow
from eval_pipeline.tracks.capabilities import (
    Audits,
    Catalogued,
    ComparesMetrics,
    Contradiction,
    Damageable,
    Executes,
    Explains,
    Gathers,
    Recovers,
    Reports,
    Shares,
    Tabulates,
    Validates,
)
from eval_pipeline.tracks.scored.recovery import attempt_outcomes
from eval_pipeline_plugins.tracks.sdmx import SdmxManifest, tables
from eval_pipeline_plugins.tracks.sdmx.responses.accepted import judged, used_target
from eval_pipeline_plugins.tracks.sdmx.responses.artefact import KEY, parse_selection
from eval_pipeline_plugins.tracks.sdmx.responses.scoring import as_evidence, from_evidence
from eval_pipeline_plugins.tracks.sdmx.responses.selection import (
    NOTHING,
    Selection,
    selection_from_json,
    selection_json,
    selection_text,
)
from eval_pipeline_plugins.tracks.sdmx.responses.statgpt_answers import is_artefact

if TYPE_CHECKING:
    import pyarrow as pa

    from eval_pipeline_plugins.tracks.sdmx.case_file import SdmxCase, SdmxContext, SdmxGold, SdmxTurn
    from eval_pipeline_plugins.tracks.sdmx.search.retrieval import Retriever

_REJECTED_SCORE = 0.6
"""Chosen by judgement, not measured: the authors must have made a mistake in one of the two places."""


class _Executor:
    """Looks terms up in the case's catalogue."""

    immediate: ClassVar[bool] = True

    async def execute(self, artefact: Selection, case: "SdmxCase") -> Outcome:
        from eval_pipeline_plugins.tracks.sdmx.responses.execute import run_selection

        context = case.context
        return run_selection(artefact, context.catalogue)


class SdmxTrack(
    SdmxManifest,
    Task["SdmxContext", "SdmxGold", Selection],
    Executes,
    Validates["SdmxContext", "SdmxGold", Selection],
    Gathers["SdmxContext", "SdmxGold", Selection],
    Recovers,
    Shares,
    Damageable["SdmxContext", "SdmxGold"],
    Audits["SdmxContext", "SdmxGold"],
    Tabulates["SdmxContext", "SdmxGold", Selection],
    ComparesMetrics,
    Catalogued,
    Reports,
    Explains["SdmxContext", "SdmxGold", Selection],
):
    """Implements `tracks.base.Task` and the capabilities in `tracks.capabilities`.

    What reads catalogues and cases is imported when it is used: a run that finds all up to date needs none of it.
    """

    compared_metrics: tuple[str, ...] = ("macro_recall", "macro_precision")
    sheets: tuple[str, ...] = (
        "eval_pipeline_plugins.tracks.sdmx.sheets.overview:write_overview",
        "eval_pipeline_plugins.tracks.sdmx.sheets.compact:write_compact",
        "eval_pipeline_plugins.tracks.sdmx.sheets.statistics:write_statistics",
        "eval_pipeline_plugins.tracks.sdmx.sheets.by_place:write_by_place",
    )
    candidates = "eval_pipeline_plugins.tracks.sdmx.search.of_suite:suite_candidates"
    structures = "eval_pipeline_plugins.tracks.sdmx.catalogue.told:told"
    mistakes = "eval_pipeline_plugins.tracks.sdmx.sheets.compact:mistake_texts"
    page_sheets = "eval_pipeline_plugins.tracks.sdmx.sheets.page:place_sheets"
    charts = "eval_pipeline_plugins.tracks.sdmx.sheets.page:place_charts"
    keeps_good_cases = True
    shows_shared = True
    gold_fields: tuple[str, ...] = ("target",)
    strict_metrics: tuple[str, ...] = ()

    read_shared = Later("eval_pipeline_plugins.tracks.sdmx.catalogue.source:read_catalogue")
    read_case = Later("eval_pipeline_plugins.tracks.sdmx.case_file:read_case")
    prompt_parts = Later("eval_pipeline_plugins.tracks.sdmx.prompt:prompt_parts")
    artefact_json = Later("eval_pipeline_plugins.tracks.sdmx.responses.selection:selection_json")
    artefact_from_json = Later("eval_pipeline_plugins.tracks.sdmx.responses.selection:selection_from_json")
    conversation_figures = Later("eval_pipeline_plugins.tracks.sdmx.sheets.figures:conversation_figures")
    cards = Later("eval_pipeline_plugins.tracks.sdmx.cards:turn_cards")

    def shared_notes(self, shared: "Retriever", cases: Sequence["SdmxCase"] = ()) -> Sequence[str]:
        """See `source.catalogue_notes`; also tells lines of the suite's own candidates that no case uses."""
        from eval_pipeline_plugins.tracks.sdmx.catalogue import source

        notes = source.catalogue_notes(shared.catalogue)
        if shared.given is not None:
            notes += shared.given.notes({case.id: len(case.turns) for case in cases})
        return notes

    def shared_rows(self, shared: "Retriever") -> Mapping[str, Mapping[str, Sequence[Any]]]:
        """See `source.catalogue_rows`."""
        from eval_pipeline_plugins.tracks.sdmx.catalogue import source

        return source.catalogue_rows(shared.catalogue, shared.given)

    def load_shared(self, found: "Mapping[str, pa.Table]", options: Mapping[str, Json], folder: Path) -> "Retriever":
        """See `source.load_catalogue`."""
        from eval_pipeline_plugins.tracks.sdmx.catalogue import source

        return source.load_catalogue(found, options)

    def gold_place(self, index: int) -> tuple[str | int, ...]:
        """Returns the place of a turn's gold in the case: an entry of `conversation`."""
        return "conversation", index

    def contradictions(self, case: "SdmxCase") -> list[Contradiction]:
        """Returns turns whose target names a data set that the case lists as rejected."""
        rejected = {name.strip() for name in str(case.features["rejected_data_sets"]).split(",")} - {""}
        rejected = {case.context.catalogue.meant(name) for name in rejected}
        wanted = ((turn, {id for target in turn.gold.accepted for id in target.data_sets}) for turn in case.turns)
        both = ((turn, sorted(rejected & ids)) for turn, ids in wanted)
        told = "the target names data sets that the case rejects"
        return [Contradiction(turn.id, f"{told}: {', '.join(names)}", _REJECTED_SCORE) for turn, names in both if names]

    def answer_keys(self, turn: "SdmxTurn", results: Sequence[Json]) -> list[str]:
        """Returns a key for each result; selections of the same terms have the same key, whatever their order."""
        return [canonical_json(_in_order(selection_from_json(told))) for told in results]

    def expected_text(self, turn: "SdmxTurn") -> str:
        """Returns the target as text, one line per dimension; alternatives follow after a line `or`."""
        return "\nor\n".join(map(selection_text, turn.gold.accepted))

    def gold_json(self, turn: "SdmxTurn") -> Json:
        """Returns the target in the form of the suite's file."""
        others = [selection_json(other) for other in turn.gold.alternatives]
        scope = {"is_out_of_scope": True} if turn.gold.out_of_scope else {}
        return {**selection_json(_target(turn)), **({"alternatives": others} if others else {}), **scope}

    def gold_is_empty(self, turn: "SdmxTurn") -> bool:
        """Returns whether the target has no terms."""
        return not _target(turn).terms

    def gold_complexity(self, turn: "SdmxTurn") -> int:
        """Returns the number of terms in the target."""
        return _target(turn).terms

    def prefix_key(self, case: "SdmxCase") -> str:
        """Returns the same key for all cases: they share the instructions and, if all are shown, the data sets."""
        return ""

    def context_json(self, case: "SdmxCase") -> Json:
        """Returns the data sets and their dimensions only; an application that is evaluated has its own catalogue."""
        context = case.context
        return {
            "data_sets": [
                {"dataset_id": found.id, "name": found.name, "dimensions": list(found.dimensions)}
                for found in context.catalogue.data_sets.values()
            ]
        }

    def parse(self, text: str, *, recorded: bool) -> Selection:
        """See `artefact.parse_selection`; recorded selections have the same form."""
        return parse_selection(text)

    def validate(self, artefact: Selection | None, error: ArtefactError | None, case: "SdmxCase") -> ValidationRow:
        """See `validator.validate_selection`."""
        from eval_pipeline_plugins.tracks.sdmx.responses.execute import validate_selection

        context = case.context
        return validate_selection(artefact, error, context.catalogue)

    def executor(self) -> AbstractAsyncContextManager[Executor]:
        """Returns an executor, which needs no resources."""
        return _executor()

    def answer_text(self, value: Json) -> str:
        """Returns the selection as text, one line per dimension."""
        return selection_text(selection_from_json(value))

    def gather(self, case: "SdmxCase", turn: "SdmxTurn", final: Attempt[Selection]) -> tuple[Evidence, ...]:
        """Returns one piece of evidence for each data set and dimension of target or selection; see `scoring`."""
        from eval_pipeline_plugins.tracks.sdmx.responses.execute import aliases

        context: SdmxContext = case.context  # the type leads fingerprints to the search
        selected = _said(final, context) or NOTHING
        written = aliases(final.artefact or NOTHING, context.catalogue)
        _, scores = judged(turn.gold, selected, context.candidates(turn), written)
        return as_evidence(turn.id, final.sample, scores)

    def values(
        self, case: "SdmxCase", turn: "SdmxTurn", attempts: Sequence[Attempt[Selection]], evidence: Sequence[Evidence]
    ) -> dict[str, Any]:
        """Returns the inputs of the metrics.

        `places` holds the result of each dimension, including terms that the catalogue lacks. `answered` means that the
        final attempt ran (only if the catalogue has everything that it names), `failed` that it did not. `no_answer`
        means that no attempt produced any text.
        """
        answered = _selected(attempts[-1]) is not None
        return {
            "places": from_evidence(evidence),
            "answered": answered,
            "failed": not answered,
            "no_answer": not any(a.response is not None and a.response.text.strip() for a in attempts),
            "attempts_outcomes": attempt_outcomes(attempts),
        }

    def score(self, metrics: Mapping[str, Any]) -> float | None:
        """Returns the value of `macro_f1`."""
        graded: float | None = metrics["macro_f1"]
        return graded

    def turn_row(
        self, case: "SdmxCase", turn: "SdmxTurn", attempts: Sequence[Attempt[Selection]]
    ) -> Mapping[str, Json]:
        """Returns the case's features, the target, the selection, the terms as given, and the number of candidates."""
        context: SdmxContext = case.context  # the type leads fingerprints to the search
        selected = _selected(attempts[-1]) if attempts else None
        said = _said(attempts[-1], context) if attempts else None
        target = used_target(turn.gold, said or NOTHING, context.candidates(turn))
        return {
            **case.features,
            "target": selection_json(target)[KEY],
            "target_used": turn.gold.accepted.index(target),
            "accepted_targets": len(turn.gold.accepted),
            "out_of_scope": turn.gold.out_of_scope,
            "selection": None if selected is None else selection_json(selected)[KEY],
            "said": None if said is None else selection_json(said)[KEY],
            "target_terms": target.terms,
            "candidates": sum(map(len, context.candidates(turn).places.values())),
        }

    def table_rows(
        self, case: "SdmxCase", turn: "SdmxTurn", attempts: Sequence[Attempt[Selection]], evidence: Sequence[Evidence]
    ) -> Mapping[str, Sequence[Mapping[str, Json]]]:
        """Returns rows of `sdmx_terms` and `sdmx_dimensions`."""
        found: defaultdict[str, list[Mapping[str, Json]]] = defaultdict(list)
        for score in from_evidence(evidence):
            place = {"dataset_id": score.data_set, "dimension": score.dimension}
            for term in score.terms:
                judged = {"id": term.id, "name": term.name, "verdict": term.verdict}
                search = {"retrieved": term.retrieved, "searched": term.searched, "retrieval_rank": term.rank}
                known = {"from_target": term.from_target, "valid": term.valid, "doubt": term.doubt}
                found[tables.TERMS.name].append({**place, **judged, **search, **known})
            counts = {"true_positives": "tp", "false_positives": "fp", "false_negatives": "fn"}
            written = {"said_as": score.said_as, "target_as": score.target_as}
            row: dict[str, Json] = {**place, "target": score.target, **written}
            row |= {name: sum(term.verdict == verdict for term in score.terms) for name, verdict in counts.items()}
            found[tables.DIMENSIONS.name].append({**row, "precision": score.precision, "recall": score.recall})
        return found

    def oracle(self, turn: "SdmxTurn") -> str:
        """Returns the target, written as a model's answer."""
        from eval_pipeline_plugins.tracks.sdmx.damage import selection_response

        return selection_response(_target(turn))

    def cheats(self, case: "SdmxCase", turn: "SdmxTurn") -> Mapping[str, str]:
        """Returns all terms of the target's dimensions."""
        from eval_pipeline_plugins.tracks.sdmx.damage import all_terms

        return {} if (text := all_terms(turn.gold)) is None else {"all options at once": text}

    def damage(self, case: "SdmxCase", turn: "SdmxTurn", mode: str, rng: Random) -> str | None:
        """See `damage.damaged_response`."""
        from eval_pipeline_plugins.tracks.sdmx.damage import damaged_response

        return damaged_response(turn.gold, mode, rng)

    def from_recorded(self, row: Mapping[str, Json]) -> str:
        """Returns the selection in `response`, which may be text or JSON."""
        response = row.get("response")
        if isinstance(response, str):
            return response
        if isinstance(response, list):
            return canonical_json({KEY: response})
        if isinstance(response, dict) and (KEY in response or is_artefact(response)):
            return canonical_json(response)
        raise ValueError(f"a prediction of track sdmx needs 'response' with '{KEY}', as in the cases")


@asynccontextmanager
async def _executor() -> AsyncIterator[Executor]:
    yield _Executor()


def _in_order(selection: Selection) -> Json:
    """Returns the selection's terms by data set and dimension, sorted; places without terms are left out."""
    return sorted([*place, *sorted(id for id, _ in terms)] for place, terms in selection.places.items() if terms)


def _target(turn: "SdmxTurn") -> Selection:
    return turn.gold.target


def _selected(attempt: Attempt) -> Selection | None:
    """Returns what an attempt selected, or None if it did not run."""
    return selection_from_json(attempt.outcome.value) if isinstance(attempt.outcome, Ran) else None


def _said(attempt: Attempt, context: "SdmxContext") -> Selection | None:
    """Returns what an attempt named, whether or not the catalogue has it; None if no selection could be read.

    A term that is not in the catalogue cannot run, but it was selected, and counts as wrong in its dimension.
    """
    from eval_pipeline_plugins.tracks.sdmx.responses.execute import named

    found = _selected(attempt)
    if found is not None or attempt.artefact is None:
        return found
    return named(attempt.artefact, context.catalogue)


TRACK = SdmxTrack()
