"""The track: how the stages deal with code generation over DataFrames."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from eval_pipeline.core.installed.plugins import Later
from eval_pipeline.core.model import Attempt, Evidence, Failed, Json, Ran
from eval_pipeline.tracks.base import ArtefactError, Task, ValidationRow
from eval_pipeline.tracks.capabilities import (
    Audits,
    Damageable,
    Executes,
    Explains,
    Keeps,
    Mutates,
    Recovers,
    Reports,
    Shares,
    Validates,
)
from eval_pipeline.tracks.scored.recovery import attempt_outcomes
from eval_pipeline_plugins.tracks.pandas_code import PandasManifest
from eval_pipeline_plugins.tracks.pandas_code.cases.dialect import is_polars, pandas_response
from eval_pipeline_plugins.tracks.pandas_code.metrics import NO_CODE
from eval_pipeline_plugins.tracks.pandas_code.prompt import tables_text
from eval_pipeline_plugins.tracks.pandas_code.responses.artefact import Code

if TYPE_CHECKING:
    from eval_pipeline.tracks.scored.mutation_score import TurnMutants
    from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import (
        PandasCase,
        PandasContext,
        PandasGold,
        PandasTurn,
    )


_OF_CODE = (
    *("quality_score", "understanding_score_from_words", "coverage_score_from_words"),
    *("understanding_score", "coverage_score", "performance_score"),
)


class PandasTrack(
    PandasManifest,
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

    What reads cases and runs code is imported when it is used: a run that finds all up to date needs none of it.
    """

    reads_in_sandbox: bool = True
    sheets: tuple[str, ...] = ("eval_pipeline_plugins.tracks.pandas_code.shown.sheet:write_code",)
    report_files: tuple[str, ...] = ("eval_pipeline_plugins.tracks.pandas_code.shown.chat_history:write_chat_history",)
    gold_fields: tuple[str, ...] = ("code", "expected", "answers", "tests", "ordered")
    strict_metrics: tuple[str, ...] = ()
    evidence_cpu_s: float = 0.25
    measured_kinds: frozenset[str] = frozenset({"performance"})

    read_shared = Later("eval_pipeline_plugins.tracks.pandas_code.cases.source:read_tables")
    shared_rows = Later("eval_pipeline_plugins.tracks.pandas_code.cases.source:table_rows")
    load_shared = Later("eval_pipeline_plugins.tracks.pandas_code.cases.source:load_tables")
    read_case = Later("eval_pipeline_plugins.tracks.pandas_code.cases.case_file:read_case")
    contradictions = Later("eval_pipeline_plugins.tracks.pandas_code.responses.lint:contradictions")
    prompt_parts = Later("eval_pipeline_plugins.tracks.pandas_code.prompt:prompt_parts")
    parse = Later("eval_pipeline_plugins.tracks.pandas_code.responses.artefact:parse_code")
    artefact_json = Later("eval_pipeline_plugins.tracks.pandas_code.responses.artefact:code_json")
    artefact_from_json = Later("eval_pipeline_plugins.tracks.pandas_code.responses.artefact:code_from_json")
    executor = Later("eval_pipeline_plugins.tracks.pandas_code.running.execute:open_executor")
    worker_tier = Later("eval_pipeline_plugins.tracks.pandas_code.running.runner:confined_tier")
    answer_text = Later("eval_pipeline_plugins.tracks.pandas_code.running.execute:answer_text")
    depends_on = Later("eval_pipeline_plugins.tracks.pandas_code.running.steady:depends_on")
    compare_all = Later("eval_pipeline_plugins.tracks.pandas_code.running.evidence:compare_all")
    cards = Later("eval_pipeline_plugins.tracks.pandas_code.shown.cards:turn_cards")
    results = Later("eval_pipeline_plugins.tracks.pandas_code.shown.cards:both_results")
    from_recorded = Later("eval_pipeline_plugins.tracks.pandas_code.responses.recorded:recorded_response")

    def check_gold(self, case: "PandasCase") -> "list[tuple[PandasTurn, str]]":
        """Returns turns whose reference code does not run or contradicts the suite's expected result."""
        from eval_pipeline_plugins.tracks.pandas_code.cases.gold import gold_problem

        found = ((turn, gold_problem(turn.gold)) for turn in case.turns)
        return [(turn, problem) for turn, problem in found if problem is not None]

    def turn_mutants(self, case: "PandasCase", turn: "PandasTurn") -> "TurnMutants | None":
        """See `robust.scoring.turn_mutants_score`."""
        from eval_pipeline_plugins.tracks.pandas_code.robust.scoring import turn_mutants_score

        return turn_mutants_score(turn)

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

    def context_json(self, case: "PandasCase") -> Json:
        """Returns the tables as shown to models, with the paths of their files."""
        files: dict[str, Json] = {name: str(path) for name, path in case.context.paths.items()}
        return {"tables": tables_text(case.context.tables), "files": files}

    def validate(self, artefact: Code | None, error: ArtefactError | None, case: "PandasCase") -> ValidationRow:
        """See `validator.validate`."""
        from eval_pipeline_plugins.tracks.pandas_code.responses.validator import validate

        return validate(artefact, error, case.context)

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

    def unscored(self, turn: "PandasTurn", artefact: Code) -> Mapping[str, tuple[str, ...]]:
        """Returns the metrics that do not apply because there is no code."""
        return {} if artefact.code else {NO_CODE: _OF_CODE}


TRACK = PandasTrack()
