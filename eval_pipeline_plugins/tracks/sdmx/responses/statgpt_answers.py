"""Reads what StatGPT answered: the artefact of a job, a JSON object with `test_case` and `responses`.

A response holds the state of its chat completion. The terms that were selected are in the tool messages of the state,
as `dimension_id_to_name`: id of a data set in StatGPT → dimension → code → name; `indexed_datasets_id_map` gives the
data set's own id. Source: `statgpt/mcp_lite/tools/eval_artifact.py` and `statgpt/app/schemas/` of epam/statgpt-backend.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eval_pipeline.core.model import Json

_STATE = ("choices", 0, "message", "custom_content", "state")


def is_artefact(value: Any) -> bool:
    """Whether a JSON value is the artefact of a job, or one of its responses, or the chat completion in it."""
    return isinstance(value, dict) and (
        isinstance(value.get("responses"), list)
        or (value_at(value, *_STATE) or value_at(value, "data", *_STATE)) is not None
    )


def last_selection(value: Mapping[str, Any]) -> dict[str, Json]:
    """Returns what the last response of an artefact selected, in the form of targets.

    Raises:
        ValueError: it has no response, or a response without a state.
    """
    responses = value["responses"] if isinstance(value.get("responses"), list) else [value]
    found = list(selections(responses))
    if not found:
        raise ValueError("the artefact has no response")
    if found[-1] is None:
        raise ValueError("the last response of the artefact has no state of a chat completion")
    return found[-1]


def selections(responses: Sequence[Any]) -> Iterator[dict[str, Json] | None]:
    """Yields what each response selected, in the form of targets; None where it has no state.

    A question that is out of scope, and one that no tool was called for, select nothing. Tool messages of earlier
    responses, which a state may repeat, are left out.
    """
    before: list[Any] = []
    for response in responses:
        state = value_at(response, "data", *_STATE) or value_at(response, *_STATE)
        if not isinstance(state, dict):
            yield None
            continue
        messages = state.get("tool_messages") or []
        new = messages[len(before) :] if before and messages[: len(before)] == before else messages
        before = messages
        entries = [] if state.get("out_of_scope") else [entry for message in new for entry in _entries(message)]
        yield {"indicator_selection": entries, **({"is_out_of_scope": True} if state.get("out_of_scope") else {})}


def _entries(message: Any) -> Iterator[dict[str, Json]]:
    state = value_at(message, "custom_content", "state")
    if not isinstance(state, dict):
        return
    names = state.get("indexed_datasets_id_map") or {}
    for data_set, dimensions in (state.get("dimension_id_to_name") or {}).items():
        yield {
            "dataset_id": str(names.get(data_set, data_set)),
            "dimensions": [
                {
                    "dimension_name": dimension,
                    "values": [{"id": id, "name": name or ""} for id, name in (terms or {}).items()],
                }
                for dimension, terms in (dimensions or {}).items()
            ],
        }


def value_at(value: Any, *path: str | int) -> Any:
    """Returns the value at a path of keys and indices, or None if there is none."""
    for part in path:
        if isinstance(part, int):
            value = value[part] if isinstance(value, list) and len(value) > part else None
        else:
            value = value.get(part) if isinstance(value, dict) else None
    return value
