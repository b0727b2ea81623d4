"""The chain of stages of a suite, as data.

Dagster's assets, freshness checks, lineage and reports are derived from it.
"""

from collections.abc import Hashable, Iterator
from functools import lru_cache, partial
from itertools import takewhile
from typing import Any, cast

from eval_pipeline.analysis.aggregates import aggregates_of
from eval_pipeline.analysis.aggregates.base import Aggregate, headline_of, make, options_of
from eval_pipeline.analysis.comparisons import making
from eval_pipeline.analysis.comparisons.verdicts import SERVED_AS_BEFORE, check_no_drift, check_no_loss, check_served
from eval_pipeline.analysis.gold import suspects
from eval_pipeline.analysis.reviews import making as reviewing
from eval_pipeline.chain import delivering
from eval_pipeline.chain.stage import Asking, Chain, Check, Stage, nothing_to_keep
from eval_pipeline.fingerprints import Root
from eval_pipeline.stages import code, evidence, generate, ingest, judging, recover, score
from eval_pipeline.stages.checks import verdicts
from eval_pipeline.stages.checks.budgets import check_budget_kept
from eval_pipeline.stages.checks.gold import check_gold_usable
from eval_pipeline.stages.checks.judges import check_judge_family
from eval_pipeline.stages.checks.kept import ends_of_suite
from eval_pipeline.stages.checks.plausible import check_plausible
from eval_pipeline.stages.checks.readable import check_readable
from eval_pipeline.stages.scoring.superseded import keep_superseded
from eval_pipeline.store import tables
from eval_pipeline.tracks.abilities import suite_tables_of
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.capabilities import Judged
from eval_pipeline.workspace.inputs import Inputs

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
        run=ingest.ingest_files,
        code=code.files_code,
        settings=ingest.files_of,
        facts=ingest.file_facts,
        whole_suite=True,
        kinds=frozenset({"yaml"}),
    )
    yield Stage(
        "cases",
        "The suite's cases and turns, read and validated.",
        reads=(tables.SUITES,),
        writes=(*_SUITE_PARTS, *(suite_tables_of(track) if track else ())),
        run=ingest.ingest_cases,
        code=code.cases_code,
        settings=ingest.files_of,
        facts=ingest.case_facts,
        checks=(
            Check("every_case_read", "No case had to be left out as unreadable.", verdicts.check_cases_read),
            Check(
                "gold_holds",
                "Every turn's own gold answer follows from its gold.",
                verdicts.check_gold,
                warning=True,
            ),
            Check(
                "oracle_and_null",
                "Gold answers score 1.0 and no answer 0.0, through the stages' own functions.",
                ends_of_suite,
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
        writes=generate.TABLES,
        run=generate.generate,
        code=code.attempts_code,
        settings=generate.generating_settings,
        facts=generate.generating_facts,
        unfinished=generate.unanswered,
        asks=Asking(generate.prepare_generating, generate.note_generating),
    )
    yield Stage(
        "recovery_attempts",
        "Further attempts where executing the first one failed, with the error shown to the model.",
        reads=(tables.CASES, tables.GENERATIONS),
        writes=recover.TABLES,
        run=recover.recover,
        code=code.attempts_code,
        settings=recover.recovering_settings,
        facts=recover.recovering_facts,
        unfinished=recover.unrecovered,
        asks=Asking(recover.prepare_recovering, recover.note_recovering),
    )
    yield Stage(
        "evidence",
        "What comparing the last attempt with the gold shows.",
        reads=(tables.CASES, tables.GOLD_OVERRIDES, *_ASKED),
        writes=_EVIDENCE,
        run=evidence.gather_evidence,
        code=code.evidence_code,
        facts=evidence.evidence_facts,
        shards=True,
    )
    judged = (tables.JUDGEMENTS,) if isinstance(track, Judged) else ()
    if judged:
        yield Stage(
            "judgements",
            "What an LLM judge says of the last attempt, compared with the gold.",
            reads=(tables.CASES, tables.TURNS, tables.GOLD_OVERRIDES, *_ASKED, tables.EVIDENCE),
            writes=judged,
            run=judging.judge_answers,
            code=code.judging_code,
            settings=judging.judging_settings,
            facts=judging.judging_facts,
            unfinished=judging.not_all_judged,
            after=("raw_dataset",),
            pays=True,
            asks_again=frozenset({judging.JUDGE_PROMPT}),
            checks=(
                Check(
                    "judge_of_another_family",
                    "Judge and judged are of different families of models, as far as names tell.",
                    check_judge_family,
                    warning=True,
                ),
            ),
        )
    own = score.scored_tables(track) if track else (tables.TURN_RESULTS, tables.ERRORS, tables.METRIC_ERRORS)
    yield Stage(
        "turn_metrics",
        "Every metric on every turn, and the records of what failed.",
        reads=(tables.CASES, tables.TURNS, tables.GOLD_OVERRIDES, *_ASKED, *_EVIDENCE, *judged),
        writes=(*own, tables.METRICS),
        run=score.score,
        code=code.scoring_code,
        settings=score.gold_settings,
        facts=score.score_facts,
        replacing=keep_superseded,
        checks=_scoring_checks(track),
    )


def _scoring_checks(track: Track | None) -> tuple[Check, ...]:
    checks = (
        Check(
            "every_turn_scored_once",
            "Every planned turn and sample has exactly one result.",
            verdicts.check_every_turn_once,
            blocking=True,
        ),
        Check("readable", "Nearly all answers could be read; below 95% a remark.", check_readable),
        Check(
            "plausible",
            "Answers belong to the questions that they are compared with, in units and order.",
            check_plausible,
            warning=True,
        ),
        Check(
            "gold_usable",
            "Every turn could be scored, by gold that gives what it gave when the suite was read.",
            check_gold_usable,
            warning=True,
        ),
        Check("budget_kept", "The budgets of the run, of model and judge, allowed every call.", check_budget_kept),
        Check("no_metric_errors", "No metric failed on any turn.", verdicts.check_metric_errors),
    )
    if track is None or not verdicts.has_safety_verdicts(track):
        return checks
    text = "The validator caught every unsafe query that the model wrote."
    return (*checks, Check("unsafe_caught", text, verdicts.check_unsafe_caught, blocking=True))


def _aggregate(found: Aggregate, track: Track | None) -> Stage:
    scored = score.scored_tables(track) if track else (tables.TURN_RESULTS,)
    return Stage(
        found.table.name,
        found.table.comment,
        reads=(*scored, *found.reads),
        writes=found.tables,
        run=partial(make, found),
        code=partial(_aggregate_code, found),
        settings=options_of,
        replacing=keep_superseded if found.table is tables.STATISTICS else nothing_to_keep,
        facts=partial(headline_of, found),
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
        run=making.compare_models,
        code=lambda inputs: (
            making.compare_models,
            making.latest_evaluations,
            *(f"={name}" for name in making.compared_metrics(inputs)),
        ),
        settings=making.latest_evaluations,
        facts=making.comparison_facts,
        whole_suite=True,
    )
    yield Stage(
        "trends",
        tables.TRENDS.comment,
        reads=(tables.STATISTICS, tables.COVERAGE, tables.COST_PER_CORRECT_ANSWER),
        writes=(tables.TRENDS,),
        run=making.make_trends,
        code=lambda _: (making.make_trends, making.every_series),
        settings=making.every_series,
        facts=making.trend_facts,
        checks=(
            Check(
                "no_significant_loss",
                "No model version is significantly worse than on the date before.",
                check_no_loss,
            ),
            Check(
                "no_drift",
                "No model version is significantly worse than on its first date since a break.",
                check_no_drift,
                warning=True,
            ),
            Check(
                SERVED_AS_BEFORE,
                "Each model version was answered by one model, by the provider's own words, and by that of before.",
                check_served,
                warning=True,
            ),
        ),
        whole_suite=True,
    )
    yield Stage(
        "gold_suspects",
        tables.GOLD_SUSPECTS.comment,
        reads=(tables.CASES, tables.GOLD_OVERRIDES, tables.STATISTICS),
        writes=(tables.GOLD_SUSPECTS,),
        run=suspects.audit_gold,
        code=_auditing_code,
        settings=suspects.audited_evaluations,
        facts=suspects.suspect_facts,
        whole_suite=True,
    )
    yield Stage(
        "reviews",
        "What people say of answers, from the files beside the suite, and the figures that follow.",
        reads=(tables.STATISTICS,),
        writes=(tables.REVIEWS, tables.REVIEW_STATISTICS),
        run=reviewing.make_reviews,
        code=lambda _: (reviewing.make_reviews, reviewing.reviews_and_answers),
        settings=reviewing.reviews_and_answers,
        facts=reviewing.review_facts,
        whole_suite=True,
    )


def _auditing_code(inputs: Inputs) -> tuple[Root, ...]:
    return suspects.suspect_rows, *code.doubting_code(inputs)


INGESTING = tuple(stage.name for stage in ingesting(chain_of(None)))
COMPARING = tuple(stage.name for stage in comparing(chain_of(None)))
DELIVERING = tuple(stage.name for stage in chain_of(None) if stage.deliver)
"""Names of the stages that every suite has."""
