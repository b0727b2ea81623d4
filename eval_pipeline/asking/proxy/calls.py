"""A call that an agent made through the proxy."""

from eval_pipeline.core.model import Json, Response
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
