"""Lists for each stage the definitions that decide its result: the roots of its fingerprint.

Code that these call is found automatically. Listed here is only code that is called through a value (a track, a
provider, a metric) or that the stage merely passes along. Code of stages is named by its place: to ask whether a stage
is current, none of it need be imported.
"""

from eval_pipeline.fingerprints.places import Root
from eval_pipeline.stages.scoring.metric_runner import metrics_behind_primary
from eval_pipeline.tracks import abilities
from eval_pipeline.tracks.base import Metric, Track
from eval_pipeline.tracks.capabilities import Shares
from eval_pipeline.tracks.code import methods
from eval_pipeline.workspace.inputs import Inputs

Roots = tuple[Root, ...]

_GOLD = ("expected_text", "expected_printed", "gold_json", "gold_complexity")
_SHARED = ("read_shared", "shared_rows", "load_shared", "suite_tables", "keeps_good_cases")
_ATTEMPT = ("parse", "artefact_json", "artefact_from_json", "validate", "executor", "answer_text")
_ACTS = ("tools", "limits", "surroundings", "world")
_GATHERED = ("gather", "gather_all", "compare_all", "measure")
_SCORED = (
    "values",
    "conversation_values",
    "score",
    "turn_row",
    "table_rows",
    "turn_columns",
    "feature_columns",
    "error_columns",
)


_WHAT_IS_ASKED = (
    "eval_pipeline.stages.attempts.units:plan_units",
    "eval_pipeline.stages.generate:_ask_units",
    "eval_pipeline.stages.recover:_broken_turns",
    "eval_pipeline.stages.recover:_recover",
)
"""Code that decides which turns are asked, in which conversation, and how often again."""
_HOW_IS_ASKED = (
    "eval_pipeline.stages.attempts.ask:Asker",
    "eval_pipeline.stages.attempts.ask:first_question",
    "eval_pipeline.stages.attempts.ask:recovery_question",
    "eval_pipeline.stages.attempts.ask:own_answer",
    "eval_pipeline.stages.attempts.ask:TurnTask",
    "eval_pipeline.stages.attempts.sink:AttemptSink",
    "eval_pipeline.stages.attempts.rows:attempt_columns",
)
"""Code that builds prompts and turns responses into rows."""


def files_code(inputs: Inputs) -> Roots:
    """Returns the roots of `raw_dataset`."""
    return ("eval_pipeline.stages.ingest:ingest_files",)


def cases_code(inputs: Inputs) -> Roots:
    """Returns the roots of `cases`; its tables include the results of executing the gold."""
    shared = _SHARED if isinstance(inputs.track, Shares) else ()
    names = ("read_case", "check_gold", "gold_results", "data_json", *_GOLD, *shared)
    return "eval_pipeline.stages.ingest:ingest_cases", *methods(inputs.track, *names, "executor")


def attempts_code(inputs: Inputs) -> Roots:
    """Returns the roots of `generations` and `recovery_attempts`: building prompts and processing answers."""
    called: Roots = (abilities.executor_of, abilities.validation_of)
    own: Roots = (*called, *methods(inputs.track, "recovery_message", "context_json"))
    return (
        *own,
        *_WHAT_IS_ASKED,
        *_HOW_IS_ASKED,
        *methods(inputs.track, "prompt", "prompt_parts", *_ATTEMPT, *_ACTS, *_GOLD),
    )


def evidence_code(inputs: Inputs) -> Roots:
    """Returns the roots of `evidence`."""
    own = methods(inputs.track, *_GATHERED, "artefact_from_json")
    return (
        "eval_pipeline.stages.evidence:gather_evidence",
        "eval_pipeline.stages.attempts.rows:attempted_turns",
        *own,
        *_choosing(inputs),
    )


def kept_code(inputs: Inputs, *names: str) -> Roots:
    """Returns the roots of what is kept of a track: its methods, and what they call to run what models write."""
    return abilities.executor_of, *methods(inputs.track, *names, "depends_on")


def judging_code(inputs: Inputs) -> Roots:
    """Returns the roots of `judgements`, which decide what pairs are compared.

    The judge's question is left out on purpose: a change to it must not cause the judge to be asked again.
    """
    own = methods(inputs.track, "to_judge", "artefact_from_json")
    return (
        "eval_pipeline.stages.judged.judging:_pairs",
        "eval_pipeline.stages.judged.judging:_row",
        "eval_pipeline.stages.judged.judging:_settled",
        *own,
        *_choosing(inputs),
    )


def scoring_code(inputs: Inputs) -> Roots:
    """Returns the roots of `turn_metrics`."""
    made = (
        "eval_pipeline.stages.score:score",
        "eval_pipeline.stages.score:_scored_blocks",
        "eval_pipeline.stages.scoring.turn_rows:ScoredTurns",
        "eval_pipeline.stages.scoring.metric_runner:MetricRunner",
    )
    own = methods(inputs.track, *_SCORED, *_GOLD, "answer_text", "primary_metric")
    if inputs.gold.cases or inputs.gold.alternatives:
        own += methods(inputs.track, "check_gold")
    return *made, *own, *_kinds(inputs), *metrics_code(inputs.track.metrics), *_choosing(inputs)


def _choosing(inputs: Inputs) -> Roots:
    """Returns the code that decides which gold an overridden turn has, and which of several right answers is used."""
    of_gold: Roots = (
        "eval_pipeline.suites.overrides:scored_gold",
        "eval_pipeline.suites.overrides:ScoredGold",
        *methods(inputs.track, "gold_place"),
    )
    if not inputs.gold.alternatives:
        return of_gold
    primary = metrics_behind_primary(inputs.track)
    return *of_gold, *methods(inputs.track, "values", *_GATHERED, "nearness"), *metrics_code(tuple(primary))


def metrics_code(metrics: tuple[Metric, ...]) -> Roots:
    """Returns the code of metrics; for a metric that declares a version, the version."""
    return tuple(f"={metric.name} {metric.version}" if metric.version else metric.function for metric in metrics)


def aggregate_code(rows: Root, version: str, inputs: Inputs) -> Roots:
    """Returns the code of an aggregate: its function, or the version that it declares."""
    names = ("conversation_figures", "complexity_columns", "complexity_axes", "feature_columns", "primary_metric")
    return f"={version}" if version else rows, *_kinds(inputs), *methods(inputs.track, *names)


def _kinds(inputs: Inputs) -> Roots:
    """Returns the kinds of the metrics' values, which decide their means and intervals."""
    return tuple(f"={metric.name} is a {metric.kind}" for metric in inputs.track.metrics)


def ends_code(track: Track) -> Roots:
    """Returns the code that decides whether gold answers score 1.0 and empty answers 0.0."""
    names = ("oracle", "check_gold", "gold_is_empty", *_GATHERED, *_ATTEMPT, *_GOLD, *_SCORED)
    return *methods(track, "read_case", *names), *metrics_code(track.metrics)


def doubting_code(inputs: Inputs) -> Roots:
    """Returns the code that decides which gold answers are doubtful and which answers count as equal."""
    names = (
        "contradictions",
        "weights",
        "answer_keys",
        "strict_metrics",
        "check_gold",
        "answer_text",
        "primary_metric",
    )
    return *methods(inputs.track, *names, *_GOLD), *_choosing(inputs)
