"""The track class, which connects indicator selection to the stages of an evaluation."""

from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import Attempt, Evidence, Json, Outcome, Ran
from eval_pipeline.store.schemas import Column, Table
from eval_pipeline.tracks.base import ArtefactError, Executor, Task, ValidationRow
from eval_pipeline.tracks.capabilities import (
    Audits,
    CaseShares,
    Catalogued,
    ComparesMetrics,
    Contradiction,
    Damageable,
    Executes,
    Explains,
    Gathers,
    Recovers,
    Reports,
    Seen,
    Shares,
    Tabulates,
    Validates,
)
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.scored.recovery import attempt_outcomes
from eval_pipeline.tracks.shown.cards import Card
from eval_pipeline.tracks.texts.prompt_parts import PromptParts
from eval_pipeline_plugins.tracks.sdmx.catalogue import suite_tables as tables
from eval_pipeline_plugins.tracks.sdmx.metrics import METRICS
from eval_pipeline_plugins.tracks.sdmx.metrics.failure_mode import FAILURE_MODES
from eval_pipeline_plugins.tracks.sdmx.prompt import VERSIONS, prompt_parts
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

_FEATURE_COLUMNS = (
    Column("has_several_data_sets", "BOOLEAN", "A target of the case names several data sets; never NULL."),
    Column("has_empty_target", "BOOLEAN", "A target of the case names no term at all; never NULL."),
    Column("num_dialogue_turns", "BIGINT", "Turns of the conversation; never NULL."),
    Column("rejected_data_sets", "VARCHAR", "Data sets that the authors looked at and left out; empty for none."),
)
_TURN_COLUMNS = (
    Column("target", "JSON", "The target's terms by data set and dimension; never NULL."),
    Column("target_used", "BIGINT", "Which accepted target `target` is, from 0: the closest to what was said."),
    Column("accepted_targets", "BIGINT", "Targets of the turn that are accepted, from 1."),
    Column("out_of_scope", "BOOLEAN", "The question is out of scope, so that nothing is to be selected."),
    Column("selection", "JSON", "What the final attempt selected, in the same form; NULL where it did not run."),
    Column("said", "JSON", "What it named, also where it did not run, in the same form; NULL where nothing was read."),
    Column("target_terms", "BIGINT", "Terms of the target, from 0; never NULL."),
    Column("candidates", "BIGINT", "Terms that the request was offered, over all dimensions, from 0; never NULL."),
)
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

    Modules that read catalogues and cases are imported inside the methods that use them, because every evaluation loads
    every track to learn its columns.
    """

    name = "sdmx"
    primary_metric = "exact_selection"
    compared_metrics: tuple[str, ...] = ("macro_recall", "macro_precision")
    metrics: tuple[Metric, ...] = METRICS
    feature_columns: tuple[Column, ...] = _FEATURE_COLUMNS
    turn_columns: tuple[Column, ...] = _TURN_COLUMNS
    suite_tables: tuple[Table, ...] = tables.SUITE_TABLES
    turn_tables: tuple[Table, ...] = tables.TURN_TABLES
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
    prompt_versions: tuple[str, ...] = VERSIONS
    gold_fields: tuple[str, ...] = ("target",)
    strict_metrics: tuple[str, ...] = ()
    failure_modes: tuple[str, ...] = FAILURE_MODES
    complexity_columns: Mapping[str, str] = {"target_terms": "target_terms", "turn_number": "turn_index"}

    def read_shared(self, folder: Path, options: Mapping[str, Json]) -> "Retriever":
        """Reads the suite's catalogue; see `source.read_catalogue`."""
        from eval_pipeline_plugins.tracks.sdmx.catalogue import source

        return source.read_catalogue(folder, options)

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

    def read_case(self, raw: Mapping[str, Json], suite: str, file: str, line: int, shared: Any = None) -> "SdmxCase":
        """See `case_file.read_case`."""
        from eval_pipeline_plugins.tracks.sdmx import case_file

        return case_file.read_case(raw, suite, file, line, shared)

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

    def prompt_parts(self, case: "SdmxCase", turn: "SdmxTurn", history: Sequence[str], version: str) -> PromptParts:
        """See `prompt.prompt_parts`."""
        return prompt_parts(case, turn, history, version)

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

    def artefact_json(self, artefact: Selection) -> Json:
        """See `selection.selection_json`."""
        return selection_json(artefact)

    def artefact_from_json(self, value: Json) -> Selection:
        """See `selection.selection_from_json`."""
        return selection_from_json(value)

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

    def conversation_figures(self, found: "Mapping[str, pa.Table]") -> Sequence[CaseShares]:
        """See `figures.conversation_figures`."""
        from eval_pipeline_plugins.tracks.sdmx.sheets.figures import conversation_figures

        return conversation_figures(found)

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

    def cards(self, seen: "Seen[SdmxContext, SdmxGold, Selection]") -> Sequence[Card]:
        """See `cards.turn_cards`."""
        from eval_pipeline_plugins.tracks.sdmx.cards import turn_cards

        return turn_cards(seen)

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
