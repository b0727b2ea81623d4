"""The track: how the stages deal with code generation over DataFrames."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from eval_pipeline.core.model import Attempt, Evidence, Failed, Json, Ran
from eval_pipeline.store.schemas import Column, Table
from eval_pipeline.tracks.base import ArtefactError, Executor, Task, ValidationRow
from eval_pipeline.tracks.capabilities import (
    Audits,
    Contradiction,
    Damageable,
    Executes,
    Explains,
    Keeps,
    Mutates,
    Recovers,
    Reports,
    Seen,
    Shares,
    Validates,
)
from eval_pipeline.tracks.metric import Metric
from eval_pipeline.tracks.scored.mutation_score import TurnMutants
from eval_pipeline.tracks.scored.recovery import attempt_outcomes
from eval_pipeline.tracks.shown.cards import Card
from eval_pipeline.tracks.texts.prompt_parts import PromptParts
from eval_pipeline_plugins.tracks.pandas_code.cases.dialect import is_polars, pandas_response
from eval_pipeline_plugins.tracks.pandas_code.cases.suite_tables import TABLES
from eval_pipeline_plugins.tracks.pandas_code.failures.modes import FAILURE_MODES
from eval_pipeline_plugins.tracks.pandas_code.metrics import METRICS, met, performance
from eval_pipeline_plugins.tracks.pandas_code.metrics.static import METRICS as STATIC
from eval_pipeline_plugins.tracks.pandas_code.metrics.static import NO_CODE
from eval_pipeline_plugins.tracks.pandas_code.prompt import VERSIONS, prompt_parts, tables_text
from eval_pipeline_plugins.tracks.pandas_code.responses.artefact import Code, code_from_json, code_json, parse_code
from eval_pipeline_plugins.tracks.pandas_code.responses.recorded import recorded_response

if TYPE_CHECKING:
    import pyarrow as pa

    from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import (
        PandasCase,
        PandasContext,
        PandasGold,
        PandasTurn,
    )
    from eval_pipeline_plugins.tracks.pandas_code.cases.source import PandasShared

_FEATURE_COLUMNS = (
    Column("tables", "VARCHAR", "Names of the case's tables, parted by commas; empty where there are none."),
    Column("num_dialogue_turns", "BIGINT", "Turns of the conversation; never NULL."),
    Column("has_join", "BOOLEAN", "The case has more than one table; never NULL."),
)
_TURN_COLUMNS = (
    Column("reference_code", "VARCHAR", "The suite's code; NULL where it has none."),
    Column("reference_calls", "BIGINT", "Calls in it, the complexity; 0 without reference code; never NULL."),
    Column("code", "VARCHAR", "The final attempt's code; NULL where there is none."),
)


class PandasTrack(
    Task["PandasContext", "PandasGold", Code],
    Executes,
    Validates["PandasContext", "PandasGold", Code],
    Keeps["PandasContext", "PandasGold", Code],
    Recovers,
    Shares,
    Damageable["PandasContext", "PandasGold"],
    Audits["PandasContext", "PandasGold"],
    Mutates["PandasContext", "PandasGold"],
    Reports,
    Explains["PandasContext", "PandasGold", Code],
):
    """See `tracks.base.Task` and `tracks.capabilities`.

    The modules that read cases and run code are imported where they are used, because every evaluation asks every track
    for its columns.
    """

    name = "pandas"
    primary_metric = "result_match"
    reason_tells_difference = True
    metrics: tuple[Metric, ...] = METRICS
    feature_columns: tuple[Column, ...] = _FEATURE_COLUMNS
    turn_columns: tuple[Column, ...] = _TURN_COLUMNS
    suite_tables: tuple[Table, ...] = (TABLES,)
    reads_in_sandbox: bool = True
    sheets: tuple[str, ...] = ("eval_pipeline_plugins.tracks.pandas_code.shown.sheet:write_code",)
    report_files: tuple[str, ...] = ("eval_pipeline_plugins.tracks.pandas_code.shown.chat_history:write_chat_history",)
    prompt_versions: tuple[str, ...] = VERSIONS
    gold_fields: tuple[str, ...] = ("code", "expected", "answers", "tests", "ordered")
    strict_metrics: tuple[str, ...] = ()
    evidence_cpu_s: float = 0.25
    measured_kinds: frozenset[str] = frozenset({"performance"})
    failure_modes: tuple[str, ...] = FAILURE_MODES
    complexity_columns: Mapping[str, str] = {"reference_calls": "reference_calls"}

    def read_shared(self, folder: Path, options: Mapping[str, Json]) -> "PandasShared":
        """See `source.read_tables`."""
        from eval_pipeline_plugins.tracks.pandas_code.cases import source

        return source.read_tables(folder, options)

    def shared_rows(self, shared: "PandasShared") -> Mapping[str, Mapping[str, Sequence[Any]]]:
        """See `source.table_rows`."""
        from eval_pipeline_plugins.tracks.pandas_code.cases import source

        return source.table_rows(shared)

    def load_shared(
        self, tables: "Mapping[str, pa.Table]", options: Mapping[str, Json], folder: Path
    ) -> "PandasShared":
        """See `source.load_tables`."""
        from eval_pipeline_plugins.tracks.pandas_code.cases import source

        return source.load_tables(tables, options, folder)

    def read_case(self, raw: Mapping[str, Json], suite: str, file: str, line: int, shared: Any = None) -> "PandasCase":
        """See `case_file.read_case`."""
        from eval_pipeline_plugins.tracks.pandas_code.cases import case_file

        return case_file.read_case(raw, suite, file, line, shared)

    def check_gold(self, case: "PandasCase") -> "list[tuple[PandasTurn, str]]":
        """Returns turns whose reference code does not run or contradicts the suite's expected result."""
        from eval_pipeline_plugins.tracks.pandas_code.cases.gold import gold_problem

        found = ((turn, gold_problem(turn.gold)) for turn in case.turns)
        return [(turn, problem) for turn, problem in found if problem is not None]

    def turn_mutants(self, case: "PandasCase", turn: "PandasTurn") -> TurnMutants | None:
        """See `robust.scoring.turn_mutants_score`."""
        from eval_pipeline_plugins.tracks.pandas_code.robust.scoring import turn_mutants_score

        return turn_mutants_score(turn)

    def contradictions(self, case: "PandasCase") -> "list[Contradiction]":
        """See `lint.contradictions`."""
        from eval_pipeline_plugins.tracks.pandas_code.responses import lint

        return lint.contradictions(case)

    def answer_keys(self, turn: "PandasTurn", results: Sequence[Json]) -> list[str]:
        """See `results.reading.answer_key`."""
        from eval_pipeline_plugins.tracks.pandas_code.results.reading import answer_key

        return [answer_key(told) for told in results]

    def expected_text(self, turn: "PandasTurn") -> str:
        """See `gold.gold_text`."""
        from eval_pipeline_plugins.tracks.pandas_code.cases.gold import gold_text

        return gold_text(turn.gold)

    def gold_json(self, turn: "PandasTurn") -> Json:
        """See `gold.gold_json`."""
        from eval_pipeline_plugins.tracks.pandas_code.cases import gold

        return gold.gold_json(turn.gold)

    def expected_result(self, turn: "PandasTurn") -> Json:
        """See `gold.gold_result`."""
        from eval_pipeline_plugins.tracks.pandas_code.cases import gold

        return gold.gold_result(turn.gold)

    def gold_complexity(self, turn: "PandasTurn") -> int:
        """Returns the number of calls in the reference code."""
        return turn.gold.calls

    def prefix_key(self, case: "PandasCase") -> str:
        """Returns a key of the tables, with which the prompt begins."""
        return str(case.features["tables"]) or case.id

    def prompt_parts(self, case: "PandasCase", turn: "PandasTurn", history: Sequence[str], version: str) -> PromptParts:
        """See `prompt.prompt_parts`."""
        return prompt_parts(case, turn, history, version)

    def context_json(self, case: "PandasCase") -> Json:
        """Returns the tables as shown to models, with the paths of their files."""
        files: dict[str, Json] = {name: str(path) for name, path in case.context.paths.items()}
        return {"tables": tables_text(case.context.tables), "files": files}

    def parse(self, text: str, *, recorded: bool) -> Code:
        """See `artefact.parse_code`."""
        return parse_code(text, recorded=recorded)

    def artefact_json(self, artefact: Code) -> Json:
        """See `artefact.code_json`."""
        return code_json(artefact)

    def artefact_from_json(self, value: Json) -> Code:
        """See `artefact.code_from_json`."""
        return code_from_json(value)

    def validate(self, artefact: Code | None, error: ArtefactError | None, case: "PandasCase") -> ValidationRow:
        """See `validator.validate`."""
        from eval_pipeline_plugins.tracks.pandas_code.responses.validator import validate

        return validate(artefact, error, case.context)

    def executor(self) -> AbstractAsyncContextManager[Executor]:
        """Returns the executor, which uses the sandbox of this process."""
        from eval_pipeline_plugins.tracks.pandas_code.running.execute import open_executor

        return open_executor()

    def worker_tier(self) -> str:
        """Returns the sandbox of this process. Raises NoSandboxError if there is none but the unsafe one."""
        from eval_pipeline_plugins.tracks.pandas_code.running.runner import confined_tier

        return confined_tier()

    def answer_text(self, value: Json) -> str:
        """See `execute.answer_text`."""
        from eval_pipeline_plugins.tracks.pandas_code.running.execute import answer_text

        return answer_text(value)

    def depends_on(self, case: "PandasCase", turn: "PandasTurn | None", artefact: Code | None) -> Json:
        """See `steady.depends_on`."""
        from eval_pipeline_plugins.tracks.pandas_code.running.steady import depends_on

        return depends_on(case, turn, artefact)

    def compare_all(
        self, turns: "Sequence[tuple[PandasCase, PandasTurn, Attempt[Code]]]"
    ) -> Iterator[tuple[Evidence, ...]]:
        """See `evidence.compare_all`."""
        from eval_pipeline_plugins.tracks.pandas_code.running import evidence

        return evidence.compare_all(turns)

    def measure(
        self, case: "PandasCase", turn: "PandasTurn", final: Attempt[Code], compared: Sequence[Evidence]
    ) -> tuple[Evidence, ...]:
        """See `evidence.performance`."""
        from eval_pipeline_plugins.tracks.pandas_code.running import evidence

        return evidence.performance(turn, final)

    def nearness(self, evidence: Sequence[Evidence]) -> float:
        """Returns the understanding that the steps to the reference code leave."""
        found = next((one.details["met"] for one in evidence if one.kind == "variants"), None)
        return found["understanding"] if found else 0.0

    def values(
        self, case: "PandasCase", turn: "PandasTurn", attempts: Sequence[Attempt[Code]], evidence: Sequence[Evidence]
    ) -> dict[str, Any]:
        """Returns the inputs of the metrics; see their parameters.

        `written`: what the final attempt's code does; None without code that parses. `closed_answer`: it is a recorded
        answer without code. `answered`: its response had the answer form.
        """
        from eval_pipeline_plugins.tracks.pandas_code.analysis.quality import QualityFinding
        from eval_pipeline_plugins.tracks.pandas_code.analysis.snippet import read_snippet
        from eval_pipeline_plugins.tracks.pandas_code.question.certainty import why_unsure
        from eval_pipeline_plugins.tracks.pandas_code.question.question import read_question
        from eval_pipeline_plugins.tracks.pandas_code.robust.other_inputs import checked_function
        from eval_pipeline_plugins.tracks.pandas_code.running import evidence as evidence_of

        gold, final, context = turn.gold, attempts[-1], case.context
        artefact = final.artefact
        code = artefact.code if artefact is not None and artefact.answer is None else None
        result = evidence_of.of_kind(evidence, evidence_of.RESULT)
        performance = evidence_of.of_kind(evidence, evidence_of.PERFORMANCE)
        quality = evidence_of.of_kind(evidence, evidence_of.QUALITY)
        variants = evidence_of.of_kind(evidence, evidence_of.VARIANTS)
        failure = evidence_of.of_kind(evidence, evidence_of.FAILURE)
        decides = gold.code is not None and not gold.answers and gold.tests is None
        measured = performance is not None and performance.verdict == "measured"
        return {
            "asked": read_question(turn.question, context.columns),
            "written": read_snippet(code) if code is not None else None,
            "closed_answer": artefact is not None and code is None,
            "answered": artefact is not None,
            "no_answer": final.response is None or not final.response.text.strip(),
            "ran": isinstance(final.outcome, Ran),
            "error_class": str(final.outcome.error_class) if isinstance(final.outcome, Failed) else None,
            "result_verdict": result.verdict if result is not None else None,
            "result_score": result.value if result is not None else None,
            "result_message": result.details.get("message", "") if result is not None else "",
            "needed": result.details.get("needs", []) if result is not None else [],
            "compares": not gold.answers and gold.tests is None,
            "insisted_on": sorted(gold.insisted),
            "may_overlook": sorted(gold.form.overlooked),
            "has_code": code is not None,
            "has_reference": gold.code is not None and not is_polars(context),
            "met": variants.details["met"] if variants is not None else None,
            "why_unsure": "the code is not pandas" if is_polars(context) else why_unsure(turn.question),
            "decides": decides,
            "varies": decides or checked_function(gold) is not None,
            "variants": variants.details["variants"] if variants is not None else None,
            "variants_right": variants.details["right"] if variants is not None else None,
            "cost": dict(performance.details) if measured and performance is not None else None,
            "findings": [QualityFinding(**found) for found in quality.details["findings"]]
            if quality is not None
            else [],
            "failure": dict(failure.details) if failure is not None else None,
            "attempts_outcomes": attempt_outcomes(attempts),
        }

    def score(self, metrics: Mapping[str, Any]) -> float | None:
        """The overall score."""
        overall: float | None = metrics["overall_score"]
        return overall

    def turn_row(self, case: "PandasCase", turn: "PandasTurn", attempts: Sequence[Attempt[Code]]) -> Mapping[str, Json]:
        """Returns case features, the reference code and the model's code."""
        gold = turn.gold
        artefact = attempts[-1].artefact if attempts else None
        return {
            "tables": case.features["tables"],
            "num_dialogue_turns": len(case.turns),
            "has_join": len(case.context.tables) > 1,
            "reference_code": gold.code,
            "reference_calls": gold.calls,
            "code": None if artefact is None else artefact.code or None,
        }

    def oracle(self, turn: "PandasTurn") -> str:
        """See `gold.gold_response`."""
        from eval_pipeline_plugins.tracks.pandas_code.cases.gold import gold_response

        return gold_response(turn.gold)

    def damage(self, case: "PandasCase", turn: "PandasTurn", mode: str, rng: Random) -> str | None:
        """See `damage.damaged_response`."""
        from eval_pipeline_plugins.tracks.pandas_code.damage import damaged_response

        text = damaged_response(turn.gold, mode, rng)
        return None if text is None else pandas_response(text, case.context)

    def cards(self, seen: "Seen[PandasContext, PandasGold, Code]") -> Sequence[Card]:
        """See `cards.turn_cards`."""
        from eval_pipeline_plugins.tracks.pandas_code.shown.cards import turn_cards

        return turn_cards(seen)

    def results(self, seen: "Seen[PandasContext, PandasGold, Code]") -> Card:
        """See `cards.both_results`."""
        from eval_pipeline_plugins.tracks.pandas_code.shown.cards import both_results

        return both_results(seen)

    def from_recorded(self, row: Mapping[str, Json]) -> str:
        """See `recorded.recorded_response`."""
        return recorded_response(row)

    def unscored(self, turn: "PandasTurn", artefact: Code) -> Mapping[str, tuple[str, ...]]:
        """Returns the metrics that do not apply because there is no code."""
        unscored = (*STATIC, *met.METRICS, performance.METRIC)
        return {} if artefact.code else {NO_CODE: tuple(metric.name for metric in unscored)}


TRACK = PandasTrack()
