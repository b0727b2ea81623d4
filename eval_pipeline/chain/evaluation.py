"""The chain of stages of a suite, as data.

Dagster's assets, freshness checks, lineage and reports are derived from it.
"""

from collections.abc import Hashable, Iterator
from functools import lru_cache, partial
from itertools import takewhile
from typing import Any, cast

from eval_pipeline.analysis.aggregates import aggregates_of
from eval_pipeline.analysis.aggregates.aggregate import Aggregate, options_of
from eval_pipeline.analysis.comparisons import compared
from eval_pipeline.analysis.comparisons.verdicts import SERVED_AS_BEFORE
from eval_pipeline.analysis.reviews import stage as of_reviews
from eval_pipeline.chain import delivering
from eval_pipeline.chain.stage import Asking, Chain, Check, Stage, nothing_to_keep
from eval_pipeline.core.installed.plugins import Later
from eval_pipeline.fingerprints.places import Root
from eval_pipeline.stages import code, settings
from eval_pipeline.stages.attempts import asked
from eval_pipeline.stages.checks.verdicts import has_safety_verdicts
from eval_pipeline.store import tables
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.capabilities import Judged
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.tabled.track_tables import scored_tables

_SUITE_PARTS = (
    tables.CASES,
    tables.TURNS,
    tables.CASE_PROBLEMS,
    tables.LEFT_OUT_CASES,
    tables.GOLD_OVERRIDES,
    tables.SUITE_EDITIONS,
)
_EVIDENCE = (tables.EVIDENCE, tables.MEASURED_EVIDENCE)
_ASKED = (tables.GENERATIONS, tables.RECOVERY_ATTEMPTS)
_KEPT = Later("eval_pipeline.stages.scoring.superseded:keep_superseded")


def chain_of(track: Track | None) -> Chain:
    """Returns all stages of a suite of the track, in order.

    For an unreadable suite (None), those common to all tracks.
    """
    return _chain(cast("Hashable", track))


@lru_cache
def _chain(track: Any) -> Chain:
    ingesting, made = list(_ingesting(track)), list(_evaluating(track))
    made += [_aggregate(found, track) for found in aggregates_of(track).values()]
    held = tuple(table for stage in (*ingesting, *made) for table in stage.writes)
    return (*ingesting, *made, *delivering.of_evaluation(held), *_comparing(), *delivering.of_suite())


def ingesting(chain: Chain) -> Chain:
    """Returns the stages that read the suite: those before the first stage of an evaluation."""
    return list(takewhile(lambda stage: stage.whole_suite, chain))


def evaluating(chain: Chain) -> Chain:
    """Returns the stages of a single evaluation."""
    return [stage for stage in chain if not stage.whole_suite]


def comparing(chain: Chain) -> Chain:
    """Returns the stages that look at all evaluations of a suite."""
    return [stage for stage in chain if stage.whole_suite][len(ingesting(chain)) :]


def stage_of(track: Track | None, name: str) -> Stage:
    """Returns the stage of that name."""
    return next(stage for stage in chain_of(track) if stage.name == name)


def _ingesting(track: Track | None) -> Iterator[Stage]:
    yield Stage(
        "raw_dataset",
        "The suite's files as they came, hashed.",
        reads=(),
        writes=(tables.SUITES,),
        run=Later("eval_pipeline.stages.ingest:ingest_files"),
        code=code.files_code,
        settings=settings.files_of,
        facts=Later("eval_pipeline.stages.ingest:file_facts"),
        whole_suite=True,
        kinds=frozenset({"yaml"}),
    )
    yield Stage(
        "cases",
        "The suite's cases and turns, read and validated.",
        reads=(tables.SUITES,),
        writes=(*_SUITE_PARTS, *(track.suite_tables if track else ())),
        run=Later("eval_pipeline.stages.ingest:ingest_cases"),
        code=code.cases_code,
        settings=settings.files_of,
        facts=Later("eval_pipeline.stages.ingest:case_facts"),
        checks=(
            Check(
                "every_case_read",
                "No case had to be left out as unreadable.",
                Later("eval_pipeline.stages.checks.verdicts:check_cases_read"),
            ),
            Check(
                "gold_holds",
                "Every turn's own gold answer follows from its gold.",
                Later("eval_pipeline.stages.checks.verdicts:check_gold"),
                warning=True,
            ),
            Check(
                "oracle_and_null",
                "Gold answers score 1.0 and no answer 0.0, through the stages' own functions.",
                Later("eval_pipeline.stages.checks.kept:ends_of_suite"),
                blocking=True,
            ),
        ),
        whole_suite=True,
        kinds=frozenset({"yaml", "parquet"}),
    )


def _evaluating(track: Track | None) -> Iterator[Stage]:
    yield Stage(
        "generations",
        "The first attempt at every turn: prompt, response, artefact and what executing it gave.",
        reads=(tables.CASES,),
        writes=asked.GENERATED,
        run=Later("eval_pipeline.stages.generate:generate"),
        code=code.attempts_code,
        settings=asked.generating_settings,
        facts=Later("eval_pipeline.stages.generate:generating_facts"),
        unfinished=asked.unanswered,
        asks=Asking(asked.prepare_generating, asked.note_generating, asked.begin_generating),
    )
    yield Stage(
        "recovery_attempts",
        "Further attempts where executing the first one failed, with the error shown to the model.",
        reads=(tables.CASES, tables.GENERATIONS),
        writes=asked.RECOVERED,
        run=Later("eval_pipeline.stages.recover:recover"),
        code=code.attempts_code,
        settings=asked.recovering_settings,
        facts=Later("eval_pipeline.stages.recover:recovering_facts"),
        unfinished=asked.unrecovered,
        asks=Asking(asked.prepare_recovering, asked.note_recovering, asked.begin_recovering),
    )
    yield Stage(
        "evidence",
        "What comparing the last attempt with the gold shows.",
        reads=(tables.CASES, tables.GOLD_OVERRIDES, *_ASKED),
        writes=_EVIDENCE,
        run=Later("eval_pipeline.stages.evidence:gather_evidence"),
        code=code.evidence_code,
        facts=Later("eval_pipeline.stages.evidence:evidence_facts"),
        shards=True,
    )
    judged = (tables.JUDGEMENTS,) if isinstance(track, Judged) else ()
    if judged:
        yield Stage(
            "judgements",
            "What an LLM judge says of the last attempt, compared with the gold.",
            reads=(tables.CASES, tables.TURNS, tables.GOLD_OVERRIDES, *_ASKED, tables.EVIDENCE),
            writes=judged,
            run=Later("eval_pipeline.stages.judged.judging:judge_answers"),
            code=code.judging_code,
            settings=Later("eval_pipeline.stages.judged.judging:judging_settings"),
            facts=Later("eval_pipeline.stages.judged.judging:judging_facts"),
            unfinished=Later("eval_pipeline.stages.judged.judging:not_all_judged"),
            after=("raw_dataset",),
            pays=True,
            asks_again=frozenset({settings.JUDGE_PROMPT}),
            checks=(
                Check(
                    "judge_of_another_family",
                    "Judge and judged are of different families of models, as far as names tell.",
                    Later("eval_pipeline.stages.checks.judges:check_judge_family"),
                    warning=True,
                ),
            ),
        )
    own = scored_tables(track) if track else (tables.TURN_RESULTS, tables.ERRORS, tables.METRIC_ERRORS)
    yield Stage(
        "turn_metrics",
        "Every metric on every turn, and the records of what failed.",
        reads=(tables.CASES, tables.TURNS, tables.GOLD_OVERRIDES, *_ASKED, *_EVIDENCE, *judged),
        writes=(*own, tables.METRICS),
        run=Later("eval_pipeline.stages.score:score"),
        code=code.scoring_code,
        settings=settings.gold_settings,
        facts=Later("eval_pipeline.stages.score:score_facts"),
        replacing=_KEPT,
        checks=_scoring_checks(track),
    )


def _scoring_checks(track: Track | None) -> tuple[Check, ...]:
    checks = (
        Check(
            "every_turn_scored_once",
            "Every planned turn and sample has exactly one result.",
            Later("eval_pipeline.stages.checks.verdicts:check_every_turn_once"),
            blocking=True,
        ),
        Check(
            "readable",
            "Nearly all answers could be read; below 95% a remark.",
            Later("eval_pipeline.stages.checks.readable:check_readable"),
        ),
        Check(
            "plausible",
            "Answers belong to the questions that they are compared with, in units and order.",
            Later("eval_pipeline.stages.checks.plausible:check_plausible"),
            warning=True,
        ),
        Check(
            "gold_usable",
            "Every turn could be scored, by gold that gives what it gave when the suite was read.",
            Later("eval_pipeline.stages.checks.kept:check_gold_usable"),
            warning=True,
        ),
        Check(
            "budget_kept",
            "The budgets of the run, of model and judge, allowed every call.",
            Later("eval_pipeline.stages.checks.budgets:check_budget_kept"),
        ),
        Check(
            "no_metric_errors",
            "No metric failed on any turn.",
            Later("eval_pipeline.stages.checks.verdicts:check_metric_errors"),
        ),
    )
    if track is None or not has_safety_verdicts(track):
        return checks
    text = "The validator caught every unsafe query that the model wrote."
    return (
        *checks,
        Check("unsafe_caught", text, Later("eval_pipeline.stages.checks.verdicts:check_unsafe_caught"), blocking=True),
    )


def _aggregate(found: Aggregate, track: Track | None) -> Stage:
    scored = scored_tables(track) if track else (tables.TURN_RESULTS,)
    return Stage(
        found.table.name,
        found.table.comment,
        reads=(*scored, *found.reads),
        writes=found.tables,
        run=partial(Later("eval_pipeline.analysis.aggregates.base:make"), found),
        code=partial(_aggregate_code, found),
        settings=options_of,
        replacing=_KEPT if found.table is tables.STATISTICS else nothing_to_keep,
        facts=partial(Later("eval_pipeline.analysis.aggregates.base:headline_of"), found),
        # Each aggregate may read the options in suite.yaml, which are part of the raw data set.
        after=("raw_dataset",),
    )


def _aggregate_code(found: Aggregate, inputs: Inputs) -> tuple[Root, ...]:
    own = code.aggregate_code(found.rows, found.version, inputs)
    if found.beside is not None:
        own = (*own, found.beside[1])
    return (*own, *code.scoring_code(inputs), *code.evidence_code(inputs)) if found.scores else own


def _comparing() -> Iterator[Stage]:
    yield Stage(
        "model_comparisons",
        tables.MODEL_COMPARISONS.comment,
        reads=(tables.STATISTICS, tables.COVERAGE),
        writes=(tables.MODEL_COMPARISONS, tables.METRIC_COMPARISONS),
        run=Later("eval_pipeline.analysis.comparisons.making:compare_models"),
        code=lambda inputs: (
            "eval_pipeline.analysis.comparisons.making:compare_models",
            compared.latest_evaluations,
            *(f"={name}" for name in compared.compared_metrics(inputs)),
        ),
        settings=compared.latest_evaluations,
        facts=Later("eval_pipeline.analysis.comparisons.making:comparison_facts"),
        whole_suite=True,
    )
    yield Stage(
        "trends",
        tables.TRENDS.comment,
        reads=(tables.STATISTICS, tables.COVERAGE, tables.COST_PER_CORRECT_ANSWER),
        writes=(tables.TRENDS,),
        run=Later("eval_pipeline.analysis.comparisons.making:make_trends"),
        code=lambda _: ("eval_pipeline.analysis.comparisons.making:make_trends", compared.every_series),
        settings=compared.every_series,
        facts=Later("eval_pipeline.analysis.comparisons.making:trend_facts"),
        checks=(
            Check(
                "no_significant_loss",
                "No model version is significantly worse than on the date before.",
                Later("eval_pipeline.analysis.comparisons.verdicts:check_no_loss"),
            ),
            Check(
                "no_drift",
                "No model version is significantly worse than on its first date since a break.",
                Later("eval_pipeline.analysis.comparisons.verdicts:check_no_drift"),
                warning=True,
            ),
            Check(
                SERVED_AS_BEFORE,
                "Each model version was answered by one model, by the provider's own words, and by that of before.",
                Later("eval_pipeline.analysis.comparisons.verdicts:check_served"),
                warning=True,
            ),
        ),
        whole_suite=True,
    )
    yield Stage(
        "gold_suspects",
        tables.GOLD_SUSPECTS.comment,
        reads=(tables.CASES, tables.TURNS, tables.GOLD_OVERRIDES, tables.STATISTICS),
        writes=(tables.GOLD_SUSPECTS,),
        run=Later("eval_pipeline.analysis.gold.suspects:audit_gold"),
        code=_auditing_code,
        settings=compared.audited_evaluations,
        facts=Later("eval_pipeline.analysis.gold.suspects:suspect_facts"),
        whole_suite=True,
    )
    yield Stage(
        "reviews",
        "What people say of answers, from the files beside the suite, and the figures that follow.",
        reads=(tables.STATISTICS,),
        writes=(tables.REVIEWS, tables.REVIEW_STATISTICS),
        run=of_reviews.make_reviews,
        code=lambda _: (
            "eval_pipeline.analysis.reviews.making:make_reviews",
            "eval_pipeline.analysis.reviews.making:reviews_and_answers",
        ),
        settings=of_reviews.reviews_and_answers,
        facts=of_reviews.review_facts,
        whole_suite=True,
    )


def _auditing_code(inputs: Inputs) -> tuple[Root, ...]:
    return "eval_pipeline.analysis.gold.suspects:suspect_rows", *code.doubting_code(inputs)


INGESTING = tuple(stage.name for stage in ingesting(chain_of(None)))
COMPARING = tuple(stage.name for stage in comparing(chain_of(None)))
DELIVERING = tuple(stage.name for stage in chain_of(None) if stage.deliver)
"""Names of the stages that every suite has."""
