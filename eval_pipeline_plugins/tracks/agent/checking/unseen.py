"""What of an attempt nobody can judge, since its world has ended or its end state is not on record."""

from collections.abc import Mapping, Sequence
from typing import Any

from eval_pipeline_plugins.tracks.agent.cases.settings import AnswerCheck, Check, kind_of


def unseen(checks: Sequence[Check], end_state: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Returns the kinds of checks that look at an end state, if that is unknown; of calls, names may differ."""
    kinds = [kind_of(one) for one in checks if not isinstance(one, AnswerCheck)]
    return tuple(dict.fromkeys(kinds)) if end_state is None else ()


def unjudged(checks: Sequence[Check], result: Mapping[str, Any]) -> str | None:
    """Returns why an attempt with this result is neither right nor wrong; None if it is one of them."""
    if result.get("ended") == "harness":
        return "its world has ended"
    found = unseen(checks, result.get("end_state", {}))
    return f"its end state is not on record, which is checked ({', '.join(found)})" if found else None
