"""Calls that an agent made through the proxy: of models, and of the tools of its case."""

from collections.abc import Mapping

from eval_pipeline.core.model import Json, Response, ToolCall
from eval_pipeline.core.values import value


@value
class ProxiedCall:
    """A call of the model that was answered.

    Attributes:
        wire: the form, `anthropic`, `chat` or `responses`.
        request: the body of the request.
        response: what the model said, with tokens, dollars and latency.
        from_journal: whether it was answered before, and cost nothing now.
    """

    wire: str
    request: Json
    response: Response
    from_journal: bool


@value
class MadeCall:
    """A call of one of the case's own tools.

    Attributes:
        place: how many calls of models had begun before.
        call: as it was made.
        step: what it gave, as a step of a trajectory.
    """

    place: int
    call: ToolCall
    step: Mapping[str, Json]
