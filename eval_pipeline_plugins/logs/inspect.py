"""Reads logs of Inspect with its own package: a sample becomes an answer, an epoch our sample.

Source: inspect_ai.log, https://inspect.aisi.org.uk/eval-logs.html
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval_pipeline.core.errors import InputError, MissingExtraError, Problem
from eval_pipeline.core.installed.plugins import install
from eval_pipeline.core.model import ErrorClass, Json
from eval_pipeline.operations.recorded.entries import Entry, LoggedTask
from eval_pipeline_plugins.logs.texts import question_text, verdict_of
from eval_pipeline_plugins.trajectories import OURS, attempt, call_told, model_step, tool_step

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample

MISSING = f"logs of Inspect are read and written by inspect-ai; {install('inspect')}"
NO_MODEL = "no_model"
"""Field of ours of a message that no model said: its tools were called by somebody else."""
_LIMITS = {"time": "seconds", "working": "seconds", "message": "model_calls", "turn": "model_calls", "token": "tokens"}
_LIMITS |= {"cost": "usd", "context": "max_tokens"}
_ERRORS = {"timeout": ErrorClass.TIMEOUT, "permission": ErrorClass.SANDBOX, "parsing": ErrorClass.VALUE}
_UNUSED = {"events", "store", "attachments", "timelines", "events_data"}
_NO_SAMPLING = {"max_retries", "timeout", "attempt_timeout", "max_connections", "system_message", "batch", "cache"}


def read_inspect(source: Path) -> Iterator[Entry]:
    """Yields the samples of a log.

    Raises:
        MissingExtraError: inspect-ai is not installed.
        InputError: the log has no samples.
    """
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as error:
        raise MissingExtraError(MISSING) from error
    header = read_eval_log(str(source), header_only=True)
    of_all = _of_all(header)
    count = 0
    for sample in _samples(source, header):
        count += 1
        yield _entry(header, sample, of_all)
    if count == 0:
        what = f"the log (status '{header.status}') has no samples: was it written with --no-log-samples?"
        raise InputError([Problem(str(source), None, "samples", what)])


def _samples(source: Path, header: "EvalLog") -> Iterable["EvalSample"]:
    """Returns the samples, one by one where the header lists them; a log without that list is read as a whole."""
    from inspect_ai.log import read_eval_log, read_eval_log_samples

    unused = _UNUSED - {"attachments"}
    if header.eval.dataset.sample_ids is None:  # as of Inspect of 2024 and of other programs
        return read_eval_log(str(source), resolve_attachments="core", exclude_fields=unused).samples or ()
    return read_eval_log_samples(
        str(source), all_samples_required=False, resolve_attachments="core", exclude_fields=unused
    )


def _of_all(header: "EvalLog") -> dict[str, Json]:
    """Returns what the log says about all its answers."""
    config = header.eval.model_generate_config.merge(header.plan.config)
    sampling = config.model_dump(mode="json", exclude_none=True, exclude=_NO_SAMPLING)
    version = header.eval.packages.get("inspect_ai")
    return {
        "model": header.eval.model,
        "sampling": sampling or None,
        "asked_on": header.eval.created[:10],
        "tool": f"inspect_ai {version}" if version else "inspect_ai",
    }


def _entry(header: "EvalLog", sample: "EvalSample", of_all: Mapping[str, Json]) -> Entry:
    said = [message.text for message in sample.messages if message.role == "assistant" and not message.tool_calls]
    given: dict[str, Json] = {**of_all, "sample": sample.epoch - 1, **_spent(sample)}
    if sample.started_at:
        given["asked_on"] = sample.started_at[:10]
    error = _error(header, sample)
    if error is not None:
        given["error"] = error
    else:
        given["response"] = sample.output.completion
        given["stop_reason"] = sample.output.stop_reason if sample.output.choices else None
    given |= _judged(sample)
    given["trajectory"] = attempt(list(_steps(sample.messages)), sample.metadata.get(OURS), _stopped(sample))
    given["prompt"] = _prompt(sample.messages) or (sample.input if isinstance(sample.input, str) else None)
    found = sample.model_dump(mode="json", include={"id", "epoch", "input", "target", "metadata", "scores", "uuid"})
    found |= {"output": {"completion": sample.output.completion}, "task": header.eval.task, "model": header.eval.model}
    place = f"sample {sample.id}, epoch {sample.epoch}"
    task = LoggedTask(str(sample.id), _question(sample), _expected(sample), (), header.eval.task)
    return Entry(None, place, {k: v for k, v in given.items() if v is not None}, found, tuple(said), task=task)


def _steps(messages: Sequence[Any]) -> Iterator[dict[str, Json]]:
    """Yields what the model said and its tools gave; a call whose result the log does not have was not made."""
    calls: dict[str, dict[str, Json]] = {}
    for message in messages:
        told = (message.metadata or {}).get(OURS) or {}
        if message.role == "assistant" and message.source != "input":
            named = {one.id: call_told(one.function, one.arguments) for one in message.tool_calls or ()}
            calls |= named
            if not told.get(NO_MODEL):
                yield model_step(message.text, list(named.values()), told)
        elif message.role == "tool":
            failed = message.error
            error = None if failed is None else _ERRORS.get(failed.type, ErrorClass.OTHER)
            text = message.text or ("" if failed is None else failed.message)
            call = calls.get(message.tool_call_id or "") or call_told(message.function, {})
            yield tool_step(call, text, {"error_class": error, **told})


def _stopped(sample: "EvalSample") -> tuple[str, str] | None:
    """Returns the limit that ended a sample, by our name for it."""
    if (limit := sample.limit) is None:
        return None
    return _LIMITS.get(limit.type, "gave_up"), f"it reached the limit '{limit.type}' of {limit.limit:g} in Inspect"


def _judged(sample: "EvalSample") -> dict[str, Json]:
    """Returns the scorers' values and their verdict; a value that is an object has a score for each of its names."""
    scores: dict[str, Json] = {}
    for name, score in (sample.scores or {}).items():
        if isinstance(score.value, Mapping):
            scores |= {f"{name}.{inner}": value for inner, value in score.value.items()}
        else:
            scores[name] = score.value
    return {"source_scores": scores or None, "source_correct": verdict_of(scores)}


def _question(sample: "EvalSample") -> str:
    asked = sample.input
    text = asked if isinstance(asked, str) else question_text([{"role": m.role, "content": m.text} for m in asked])
    choices = "".join(f"\n{chr(ord('A') + place)}) {choice}" for place, choice in enumerate(sample.choices or ()))
    return f"{text}\n{choices}" if choices else text


def _expected(sample: "EvalSample") -> tuple[Json, ...]:
    """Returns the targets, each of which is right; with several choices, the letters of all of them are."""
    target = sample.target
    if sample.choices and isinstance(target, list) and len(target) > 1:
        return (",".join(target),)
    return tuple(one for one in ([target] if isinstance(target, str) else target) if one)


def _error(header: "EvalLog", sample: "EvalSample") -> str | None:
    """Returns why there is no answer; our own exports have it in the metadata, since they score such turns as wrong."""
    if sample.error is not None:
        return sample.error.message
    told = sample.metadata.get("call_error") if "eval_pipeline" in header.eval.packages else None
    return None if told is None else str(told)


def _prompt(messages: Sequence[Any]) -> str:
    """Returns all messages before the model's last answer, as text."""
    answered = [place for place, message in enumerate(messages) if message.role == "assistant"]
    shown = messages[: answered[-1]] if answered else messages
    return "\n\n".join(f"[{message.role}]\n{message.text}" for message in shown)


def _spent(sample: "EvalSample") -> dict[str, Json]:
    """Returns tokens, cost and time.

    Inspect counts cached tokens separately from `input_tokens`; here they are included.
    """
    seconds = sample.output.time if len(sample.messages) < 4 and sample.output.time else sample.working_time
    told: dict[str, Json] = {"latency_ms": None if seconds is None else seconds * 1000}
    if not sample.model_usage:
        return told
    usage = reduce(add, sample.model_usage.values())
    read, written = usage.input_tokens_cache_read or 0, usage.input_tokens_cache_write or 0
    return told | {
        "input_tokens": usage.input_tokens + read + written,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": read or None,
        "cache_write_tokens": written or None,
        "usd": usage.total_cost,
    }
