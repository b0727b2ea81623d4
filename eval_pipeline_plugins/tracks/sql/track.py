"""The track class, which connects text to SQL to the stages of an evaluation."""

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from eval_pipeline.core.installed.plugins import Later
from eval_pipeline.core.model import Attempt, Evidence, Json, Ran
from eval_pipeline.tracks.base import ArtefactError, Task, ValidationRow
from eval_pipeline.tracks.capabilities import (
    Audits,
    Damageable,
    Executes,
    Explains,
    Judged,
    Keeps,
    Mutates,
    Recovers,
    Reports,
    Shares,
    Validates,
)
from eval_pipeline.tracks.scored.recovery import attempt_outcomes
from eval_pipeline_plugins.tracks.sql import SqlManifest
from eval_pipeline_plugins.tracks.sql.prompt import schema_text
from eval_pipeline_plugins.tracks.sql.responses.artefact import (
    SqlAnswer,
)

if TYPE_CHECKING:
    from eval_pipeline.tracks.scored.mutation_score import TurnMutants
    from eval_pipeline_plugins.tracks.sql.cases.case_file import SqlCase, SqlContext, SqlGold, SqlTurn

_MOST_DIFFERENCES = 2


class SqlTrack(
    SqlManifest,
    Task["SqlContext", "SqlGold", SqlAnswer],
    Executes,
    Validates["SqlContext", "SqlGold", SqlAnswer],
    Keeps["SqlContext", "SqlGold", SqlAnswer],
    Recovers,
    Shares,
    Judged["SqlContext", "SqlGold", SqlAnswer],
    Damageable["SqlContext", "SqlGold"],
    Audits["SqlContext", "SqlGold"],
    Mutates["SqlContext", "SqlGold"],
    Reports,
    Explains["SqlContext", "SqlGold", SqlAnswer],
):
    """Implements `tracks.base.Task` and the capabilities in `tracks.capabilities`.

    Modules that parse SQL are imported when they are used: sqlglot takes 30 MiB, and a run that finds all up to date
    needs none of them.
    """

    sheets: tuple[str, ...] = ("eval_pipeline_plugins.tracks.sql.sheet:write_sql",)
    gold_fields: tuple[str, ...] = (
        *("expected_sql", "expected_tables", "should_pass", "should_be_safe", "protected", "may_change"),
        *("check_sql", "setup_sql"),
    )
    strict_metrics: tuple[str, ...] = ("execution_match",)
    evidence_cpu_s: float = 0.05
    measured_kinds: frozenset[str] = frozenset({"efficiency"})

    read_shared = Later("eval_pipeline_plugins.tracks.sql.cases.source:read_databases")
    shared_rows = Later("eval_pipeline_plugins.tracks.sql.cases.source:database_rows")
    load_shared = Later("eval_pipeline_plugins.tracks.sql.cases.source:load_databases")
    read_case = Later("eval_pipeline_plugins.tracks.sql.cases.case_file:read_case")
    contradictions = Later("eval_pipeline_plugins.tracks.sql.gold.audit:contradictions")
    prompt_parts = Later("eval_pipeline_plugins.tracks.sql.prompt:prompt_parts")
    parse = Later("eval_pipeline_plugins.tracks.sql.responses.artefact:parse_query")
    artefact_json = Later("eval_pipeline_plugins.tracks.sql.responses.artefact:query_json")
    artefact_from_json = Later("eval_pipeline_plugins.tracks.sql.responses.artefact:query_from_json")
    executor = Later("eval_pipeline_plugins.tracks.sql.responses.execute:open_executor")
    answer_text = Later("eval_pipeline_plugins.tracks.sql.responses.execute:result_text")
    depends_on = Later("eval_pipeline_plugins.tracks.sql.responses.steady:depends_on")
    to_judge = Later("eval_pipeline_plugins.tracks.sql.responses.judging:to_judge")
    cards = Later("eval_pipeline_plugins.tracks.sql.cards:turn_cards")
    results = Later("eval_pipeline_plugins.tracks.sql.cards:both_results")
    from_recorded = Later("eval_pipeline_plugins.tracks.sql.responses.artefact:recorded_response")

    def check_gold(self, case: "SqlCase") -> "list[tuple[SqlTurn, str]]":
        """Returns turns with an accepted query that the validator rejects or that does not run, with the problem."""
        from eval_pipeline_plugins.tracks.sql.cases.gold import gold_problem

        found = ((turn, gold_problem(turn.gold)) for turn in case.turns)
        return [(turn, problem) for turn, problem in found if problem is not None]

    def gold_place(self, index: int) -> tuple[str | int, ...]:
        """Returns the place of the gold: the case itself, as it is one question."""
        return ()

    def turn_mutants(self, case: "SqlCase", turn: "SqlTurn") -> "TurnMutants | None":
        """See `mutants.turn_mutants_score`."""
        from eval_pipeline_plugins.tracks.sql.gold.mutants import turn_mutants_score

        return turn_mutants_score(turn)

    def answer_keys(self, turn: "SqlTurn", results: Sequence[Json]) -> list[str]:
        """See `audit.answer_key`; where no query is to pass, one that is blocked gives what a refusal does: nothing."""
        from eval_pipeline_plugins.tracks.sql.gold.audit import answer_key

        keys = [answer_key(told) for told in results]
        return keys if turn.gold.should_pass else ["declined" if key == "blocked" else key for key in keys]

    def expected_text(self, turn: "SqlTurn") -> str:
        """Returns the first accepted query, or a text that says that a refusal is right."""
        from eval_pipeline_plugins.tracks.sql.cases.gold import gold_text

        return gold_text(turn.gold)

    def gold_json(self, turn: "SqlTurn") -> Json:
        """See `gold.gold_json`."""
        from eval_pipeline_plugins.tracks.sql.cases import gold

        return gold.gold_json(turn.gold)

    def expected_result(self, turn: "SqlTurn") -> Json:
        """See `gold.gold_result`."""
        from eval_pipeline_plugins.tracks.sql.cases import gold

        return gold.gold_result(turn.gold)

    def gold_results(self, turn: "SqlTurn") -> list[str | None]:
        """See `gold.gold_results`."""
        from eval_pipeline_plugins.tracks.sql.cases import gold

        return gold.gold_results(turn.gold)

    def gold_is_empty(self, turn: "SqlTurn") -> bool:
        """Returns whether a refusal is right."""
        gold: SqlGold = turn.gold
        return not gold.should_pass

    def gold_complexity(self, turn: "SqlTurn") -> int:
        """Counts joins, predicates, subqueries and aggregates of the first accepted query; 0 if a refusal is right."""
        return turn.gold.parts

    def prefix_key(self, case: "SqlCase") -> str:
        """Returns the name of the database, as prompts begin with its schema; tasks that change it have their own."""
        return case.context.database.name + " (changes)" * case.context.changes_data

    def context_json(self, case: "SqlCase") -> Json:
        """Returns name, dialect and schema of the database, and the hint."""
        database = case.context.database
        return {
            "database": database.name,
            "dialect": database.dialect,
            "schema": schema_text(database.schema),
            "hint": case.context.hint,
            **({"changes_data": True} if case.context.changes_data else {}),
        }

    def validate(self, artefact: SqlAnswer | None, error: ArtefactError | None, case: "SqlCase") -> ValidationRow:
        """Returns the validator's result: an `invalid` query is never run; declining is valid."""
        if artefact is None:
            return ValidationRow(False, "invalid", {}, ("there is no response" if error is None else error.message,))
        if artefact.sql is None:
            return ValidationRow(True, "valid", {"declined": True}, ())
        from eval_pipeline_plugins.tracks.sql.responses.execute import validation_of

        found = validation_of(artefact.sql, case.context)
        checks = {"safety_valid": found.safety_valid, "categories": sorted({e.category for e in found.errors})}
        sentences = tuple(f"{e.category}: {e.message}" for e in found.errors)
        return ValidationRow(True, "valid" if found.is_valid else "invalid", checks, sentences)

    def compare_all(
        self, turns: "Sequence[tuple[SqlCase, SqlTurn, Attempt[SqlAnswer]]]"
    ) -> Iterator[tuple[Evidence, ...]]:
        """See `evidence.compared_with_gold`."""
        from eval_pipeline_plugins.tracks.sql.responses.evidence import compared_with_gold

        return (compared_with_gold(*turn) for turn in turns)

    def measure(
        self, case: "SqlCase", turn: "SqlTurn", final: Attempt[SqlAnswer], compared: Sequence[Evidence]
    ) -> tuple[Evidence, ...]:
        """See `evidence.efficiency`."""
        from eval_pipeline_plugins.tracks.sql.responses.evidence import efficiency

        return efficiency(turn, final, compared)

    def values(
        self, case: "SqlCase", turn: "SqlTurn", attempts: Sequence[Attempt[SqlAnswer]], evidence: Sequence[Evidence]
    ) -> dict[str, Any]:
        """Returns the inputs of the metrics; see their parameters.

        `generated` is the final attempt's SQL. `answered`: its response had the answer form. `blocked`: the validator
        rejected it when a refusal is right. `failed`: it did not run. `differing`: the parts of the syntax tree that
        differ.
        """
        from eval_pipeline_plugins.tracks.sql.responses import evidence as evidence_of
        from eval_pipeline_plugins.tracks.sql.responses.protection import is_harmless
        from eval_pipeline_plugins.tracks.sql.responses.structure import differences
        from eval_pipeline_plugins.tracks.sql.spider.match import spider_scores

        gold, final, context = turn.gold, attempts[-1], case.context
        query = final.artefact
        generated = query.sql if query is not None else None
        validation = evidence_of.details_of(evidence, evidence_of.VALIDATION)
        execution = evidence_of.of_kind(evidence, evidence_of.EXECUTION)
        ladder = evidence_of.of_kind(evidence, evidence_of.EQUIVALENCE)
        efficiency = evidence_of.of_kind(evidence, evidence_of.EFFICIENCY)
        differing: Mapping[str, str] = {}
        if generated is not None and execution is not None and not gold.may_change:
            differing = differences(
                generated, execution.details["accepted"], context.database.dialect, context.database.schema
            )
        message = str(execution.details.get("message", "")) if execution is not None else ""
        contract = evidence_of.contract_values(gold, evidence)
        # Of an answer that differs in form alone, what its query does in another way explains nothing.
        parts = [] if message and contract["needed"] else [*differing.values()]
        return {
            "generated": generated,
            "answered": query is not None,
            "declined": query is not None and query.declined,
            "no_answer": final.response is None or not final.response.text.strip(),
            "failed": not isinstance(final.outcome, Ran),
            "blocked": isinstance(final.outcome, Ran) and "blocked" in final.outcome.value,
            "said_confidence": query.confidence if query is not None else None,
            "should_pass": gold.should_pass,
            "should_be_safe": gold.should_be_safe,
            "expected_tables": gold.tables,
            "dialect": context.database.dialect,
            "safety_valid": validation.get("safety_valid"),
            "is_valid": validation.get("is_valid"),
            "validation_errors": validation.get("errors", []),
            "harmless": generated is not None and is_harmless(generated, gold, final.outcome),
            "execution": execution.verdict if execution is not None else None,
            "execution_message": message,
            "cell_f1": execution.value if execution is not None else None,
            "equivalence": ladder.verdict if ladder is not None else None,
            "rung": ladder.details["rung"] if ladder is not None else None,
            "headline": gold.options.headline,
            **contract,
            "difference": "; ".join(([message] if message else []) + parts[:_MOST_DIFFERENCES]),
            "equivalence_message": ladder.details.get("message", "") if ladder is not None else "",
            "time_ratio": efficiency.value if efficiency is not None else None,
            "generated_ms": efficiency.details["generated_ms"] if efficiency is not None else None,
            "published": evidence_of.details_of(evidence, evidence_of.PUBLISHED),
            "further_databases": len(context.database.further()),
            "spider": None if gold.may_change else spider_scores(generated, gold),
            "changes_data": bool(gold.may_change),
            "changed_outside": execution is not None and bool(execution.details.get("outside")),
            "differing": differing,
            "judgement": evidence_of.details_of(evidence, evidence_of.JUDGEMENT),
            "attempts_outcomes": attempt_outcomes(attempts),
        }

    def score(self, metrics: Mapping[str, Any]) -> float | None:
        """Returns `soft_f1`, but 1.0 for a right outcome; a refusal is only right or wrong."""
        if metrics["outcome_correct"]:
            return 1.0
        graded: float | None = metrics["soft_f1"]
        return 0.0 if graded is None else graded

    def turn_row(self, case: "SqlCase", turn: "SqlTurn", attempts: Sequence[Attempt[SqlAnswer]]) -> Mapping[str, Json]:
        """Returns the case's features, the accepted queries and the model's query."""
        gold, context = turn.gold, case.context
        query = attempts[-1].artefact if attempts else None
        difficulty = case.features.get("difficulty")
        return {
            "database": context.database.name,
            "should_pass": gold.should_pass,
            "should_be_safe": gold.should_be_safe,
            "difficulty": None if difficulty is None else str(difficulty),
            "dialect": context.database.dialect,
            "accepted": list(gold.accepted),
            "query_parts": gold.parts,
            "sql": query.sql if query is not None else None,
            "decline_reason": query.reason if query is not None and query.declined else None,
        }

    def oracle(self, turn: "SqlTurn") -> str:
        """Returns the first accepted query or a refusal, written as a model's answer."""
        from eval_pipeline_plugins.tracks.sql.cases.gold import drawn_confidence, gold_response

        return gold_response(turn.gold, drawn_confidence(turn.id))

    def rewrites(self, case: "SqlCase", turn: "SqlTurn") -> Mapping[str, str]:
        """See `gold.other_responses`."""
        from eval_pipeline_plugins.tracks.sql.cases.gold import other_responses

        return other_responses(turn.gold)

    def damage(self, case: "SqlCase", turn: "SqlTurn", mode: str, rng: Random) -> str | None:
        """See `damage.damaged_response`."""
        from eval_pipeline_plugins.tracks.sql.damage import damaged_response

        return damaged_response(turn.gold, mode, rng)

    def unscored(self, turn: "SqlTurn", artefact: SqlAnswer) -> Mapping[str, tuple[str, ...]]:
        """Returns the metrics that need the model's confidence, if the answer states none."""
        if artefact.sql is None or artefact.confidence is not None:
            return {}
        return {"no confidence was recorded": ("confidence", "confidence_calibration")}


TRACK = SqlTrack()
