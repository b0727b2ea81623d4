"""Exports an evaluation as a log of Inspect: a turn becomes a sample, our sample an epoch, a metric a score.

Source: inspect_ai.log of the installed version, https://inspect.aisi.org.uk/eval-logs.html
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_pipeline import __version__
from eval_pipeline.core.errors import MissingExtraError
from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.model import ErrorClass
from eval_pipeline.core.provenance import PROVENANCE, UNKNOWN
from eval_pipeline.providers.standins.recorded import CUT_OFF, FILTERED
from eval_pipeline.reports.contents.draws import drawn_text
from eval_pipeline.reports.contents.facts import provenance_of, settings_of
from eval_pipeline.reports.evaluation import Evaluation, Row
from eval_pipeline.reports.files.traces import traces
from eval_pipeline_plugins.exports.inspect_events import events_of
from eval_pipeline_plugins.exports.origins import CORRECT, asked_messages, asked_with, reason_of
from eval_pipeline_plugins.logs.inspect import MISSING, NO_MODEL
from eval_pipeline_plugins.tracks.agent.trajectory import Trajectory
from eval_pipeline_plugins.trajectories import AGENT, OURS, exchanges, own_end, own_fields, trajectory_of, way_of

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalResults, EvalSample, EvalScore, EvalSpec
    from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage
    from inspect_ai.scorer import Score

_VERDICTS = {True: "C", False: "I"}
_STOPPED = {"end_turn": "stop", "stop_sequence": "stop", "stop": "stop", "recorded": "stop", "tool_use": "tool_calls"}
_STOPPED |= {
    "tool_calls": "tool_calls",
    **dict.fromkeys(CUT_OFF, "max_tokens"),
    **dict.fromkeys(FILTERED, "content_filter"),
}
_ERRORS: dict[str, Any] = {ErrorClass.TIMEOUT: "timeout", ErrorClass.SANDBOX: "permission", ErrorClass.MEMORY: "limit"}
_FIGURES = (("stderr", "se"), ("ci_low", "low"), ("ci_high", "high"))


def file_name(evaluation: Evaluation) -> str:
    """Returns a file name in Inspect's form: time, task, id."""
    place = evaluation.partition
    version = "".join(letter if letter.isalnum() else "-" for letter in place.model_version)
    return f"{place.eval_date}T00-00-00-00-00_{place.suite}_{version}.eval"


def write_inspect_log(evaluation: Evaluation, file: Path) -> int:
    """Writes the log as `.eval` or `.json`, depending on the file name.

    Returns:
        The number of samples in it.

    Raises:
        MissingExtraError: inspect-ai is not installed.
        UsageError: the record lacks a table of the evaluation.
    """
    try:
        from inspect_ai.log import write_eval_log
    except ImportError as error:
        raise MissingExtraError(MISSING) from error
    log = inspect_log(evaluation)
    write_eval_log(log, str(file))
    return len(log.samples or ())


def inspect_log(evaluation: Evaluation) -> "EvalLog":
    """Converts the evaluation to a log."""
    from inspect_ai.log import EvalLog, EvalStats

    model, track = model_name(evaluation), evaluation.profile.track
    samples = [_sample(trace, turn, model, track) for _, trace in traces(evaluation) for turn in trace["turns"]]
    if track == AGENT:
        for sample in samples:
            place = f"{sample.id}-{sample.epoch}"
            sample.events = list(events_of(sample.messages, model, place, evaluation.partition.eval_date))
    spent = [usage for sample in samples for usage in sample.model_usage.values()]
    day = f"{evaluation.partition.eval_date}T00:00:00+00:00"
    stats = EvalStats(started_at=day, completed_at=day, model_usage={model: reduce(add, spent)} if spent else {})
    return EvalLog(
        status="success",
        eval=_spec(evaluation, model, samples),
        results=_results(evaluation, samples),
        stats=stats,
        samples=samples,
    )


def model_name(evaluation: Evaluation) -> str:
    """Returns the answering model's name in Inspect's form; for recorded answers, the name in their provenance."""
    model = evaluation.model
    if model["recorded"]:
        return str(provenance_of(evaluation).get("model") or UNKNOWN)
    return "/".join(filter(None, [model["provider"], model["model"]]))


def _spec(evaluation: Evaluation, model: str, samples: Sequence["EvalSample"]) -> "EvalSpec":
    from inspect_ai.log import EvalConfig, EvalDataset, EvalSpec
    from inspect_ai.log._log import EvalMetricDefinition, EvalScorer
    from inspect_ai.model import GenerateConfig

    place, suite = evaluation.partition, evaluation.suite
    sampling, settings = _asked_with(evaluation)
    known = {name: value for name, value in sampling.items() if name in GenerateConfig.model_fields}
    identity = json_hash([place.suite, place.model_version, place.eval_date.isoformat()])
    names = [CORRECT, *(info.name for info in evaluation.profile.metrics)]
    ids = list(dict.fromkeys(str(sample.id) for sample in samples))
    return EvalSpec(
        eval_id=identity[:22],
        run_id=identity[:22],
        task_id=identity[:22],
        created=f"{place.eval_date}T00:00:00+00:00",
        task=place.suite,
        task_version=suite["version"],
        task_description=suite["description"] or None,
        dataset=EvalDataset(name=place.suite, samples=len(ids), sample_ids=ids, shuffled=False),
        model=model,
        model_generate_config=GenerateConfig.model_validate(known),
        config=EvalConfig(epochs=max((sample.epoch for sample in samples), default=1)),
        packages={"eval_pipeline": __version__},
        scorers=[
            EvalScorer(name=name, metrics=[EvalMetricDefinition(name="accuracy" if name == CORRECT else "mean")])
            for name in names
        ],
        metadata={
            "model_version": place.model_version,
            "eval_date": place.eval_date.isoformat(),
            "track": evaluation.profile.track,
            "primary_metric": evaluation.profile.primary_metric,
            "suite_content_hash": suite["content_hash"],
            "identity_hash": evaluation.model["identity_hash"],
            "simulated": evaluation.simulated,
            "scope": evaluation.planned.scope,
            **({"drawn": drawn_text(evaluation.drawn)} if evaluation.drawn else {}),
            **settings,
        },
    )


def _asked_with(evaluation: Evaluation) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """Returns the sampling settings, and metadata on how the answers were made."""
    if evaluation.model["recorded"]:
        return asked_with(evaluation), {"recorded": True, PROVENANCE: provenance_of(evaluation)}
    return asked_with(evaluation), {"settings": settings_of(evaluation)}


def _sample(trace: Row, turn: Row, model: str, track: str) -> "EvalSample":
    from inspect_ai.log import EvalSample

    attempts: list[Row] = turn["attempts"]
    done = trajectory_of(turn) if track == AGENT else None
    usages = list(_usages(attempts))
    # Errors are not set on the sample: Inspect treats such samples as unscored, but here they are scored as wrong.
    call_error = attempts[-1]["error_message"] if attempts and attempts[-1]["call_error"] else None
    place = f"{trace['conversation_id']}#{turn['turn_idx']}"
    return EvalSample(
        id=place,
        epoch=turn["sample"] + 1,
        input=turn["question"],
        target=turn["expected"],
        messages=list(_messages(attempts, turn["question"], model, done)),
        output=_output(attempts, model, turn["answer"] if done is not None else None),
        scores=dict(_scores(turn)),
        metadata={
            "case_id": trace["conversation_id"],
            "turn_index": turn["turn_idx"],
            "turn_id": turn["turn_id"],
            "tags": trace["tags"],
            "features": trace["features"],
            **{name: turn[name] for name in ("outcome", "error_class", "complexity", "expected_printed", "gold")},
            "attempts": len(attempts),
            "call_error": call_error,
            PROVENANCE: attempts[0].get(PROVENANCE) if attempts else None,
            **({} if done is None else {OURS: own_end(done), **way_of(turn)}),
        },
        model_usage={model: reduce(add, usages)} if usages else {},
        total_time=_seconds(turn["latency_ms"]),
    )


def _messages(attempts: Sequence[Row], question: str, model: str, done: Trajectory | None) -> Iterator["ChatMessage"]:
    """Yields the messages of a conversation; if a recorded prompt is unknown, the question is used instead.

    What an agent did is told as it went on, in place of the response.
    """
    from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser

    kinds: dict[str, Any] = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
    for attempt in attempts:
        asked, is_made_up = asked_messages(attempt, question)
        metadata = {"prompt": UNKNOWN, "shown_here": "the suite's question"} if is_made_up else None
        yield from (kinds[role](content=text, metadata=metadata) for role, text in asked)
        if done is not None:
            yield from _done(done, model)
        elif attempt["response"] is not None:
            yield ChatMessageAssistant(content=attempt["response"], model=model)


def _done(done: Trajectory, model: str) -> Iterator["ChatMessage"]:
    """Yields what an agent said and its tools gave; a call without one of the model is said by nobody."""
    from inspect_ai.model import ChatMessageAssistant, ChatMessageTool
    from inspect_ai.tool import ToolCall, ToolCallError

    for one in exchanges(done):
        calls = [ToolCall(key, call.name, dict(call.arguments)) for key, call in one.calls.items()]
        own = {OURS: {NO_MODEL: True} if one.model is None else own_fields(one.model)}
        said = "" if one.model is None else one.model.text
        yield ChatMessageAssistant(content=said, tool_calls=calls or None, model=model, metadata=own)
        for key, step in one.results.items():
            failed = (
                None if step.error_class is None else ToolCallError(_ERRORS.get(step.error_class, "unknown"), step.text)
            )
            yield ChatMessageTool(
                content=step.text,
                tool_call_id=key,
                function=one.calls[key].name,
                error=failed,
                metadata={OURS: own_fields(step)},
            )


def _output(attempts: Sequence[Row], model: str, answer: str | None) -> "ModelOutput":
    """Returns the last response, or the answer of an agent, whose response is all that it did."""
    from inspect_ai.model import ModelOutput

    last = attempts[-1] if attempts else None
    if last is None or last["response"] is None:
        return ModelOutput(model=model)
    stopped: Any = _STOPPED.get(last["stop_reason"], "unknown")
    output = ModelOutput.from_content(model, last["response"] if answer is None else answer, stop_reason=stopped)
    output.time = _seconds(last["latency_ms"])
    output.usage = next(_usages([last]), None)
    return output


def _usages(attempts: Iterable[Row]) -> Iterator["ModelUsage"]:
    """Yields the known token usages of attempts; Inspect counts cached tokens separately from `input_tokens`."""
    from inspect_ai.model import ModelUsage

    for attempt in attempts:
        sent, received = attempt["input_tokens"], attempt["output_tokens"]
        if sent is None or received is None:
            continue
        read, written = attempt["cache_read_tokens"] or 0, attempt["cache_write_tokens"] or 0
        yield ModelUsage(
            input_tokens=sent - read - written,
            output_tokens=received,
            total_tokens=sent + received,
            input_tokens_cache_read=read or None,
            input_tokens_cache_write=written or None,
            total_cost=attempt["usd"],
        )


def _scores(turn: Row) -> Iterator[tuple[str, "Score"]]:
    """Yields the verdict, then every metric; one that does not apply is unscored, with the reason."""
    from inspect_ai.scorer import Score

    if turn["correct"] is not None:
        yield CORRECT, Score(value=_VERDICTS[turn["correct"]], answer=turn["answer"], explanation=reason_of(turn))
    for name, told in turn["metrics"].items():
        value = told["value"] if told.get("label") is None else told["label"]
        why = told.get("error") or told.get("reason")
        metadata = {"scorer_version": told["version"]} | ({"details": told["details"]} if told.get("details") else {})
        if value is None:
            yield name, Score.unscored(reason=why or "does not apply to the turn", metadata=metadata)
        else:
            yield name, Score(value=value, explanation=why, metadata=metadata)


def _results(evaluation: Evaluation, samples: Sequence["EvalSample"]) -> "EvalResults":
    from inspect_ai.log import EvalResults
    from inspect_ai.log._log import HeadlineMetric

    rows = evaluation.overall
    names = [name for name in (CORRECT, *(info.name for info in evaluation.profile.averaged)) if name in rows]
    found = [_result(name, rows[name], len(samples)) for name in names if rows[name]["mean"] is not None]
    headline = HeadlineMetric(scorer=CORRECT, score=CORRECT, metric="accuracy")
    return EvalResults(
        total_samples=len(samples),
        completed_samples=len(samples),
        scores=found,
        headline=headline if any(score.name == CORRECT for score in found) else None,
    )


def _result(name: str, row: Row, samples: int) -> "EvalScore":
    """Returns eval-pipeline's mean, standard error and interval, which are clustered by conversation."""
    from inspect_ai.log import EvalMetric, EvalScore

    mean = "accuracy" if name == CORRECT else "mean"
    metrics = {mean: EvalMetric(name=mean, value=row["mean"])}
    metrics |= {ours: EvalMetric(name=ours, value=row[of]) for ours, of in _FIGURES if row[of] is not None}
    return EvalScore(
        name=name,
        scorer=name,
        scored_samples=row["n"],
        unscored_samples=samples - row["n"],
        metrics=metrics,
        metadata={"clusters": row["clusters"], "interval": row["method"]},
    )


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
