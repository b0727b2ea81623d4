"""No answer as a model: whatever is scored above 0.0 with it, where the gold is not empty, is a fault."""

from eval_pipeline.core.model import Json, Response, Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Call, Environment
from eval_pipeline.providers.standins.inprocess import StandIn
from eval_pipeline.providers.validation import refuse_settings


class NullProvider(StandIn):
    """Answers with an empty text."""

    def __init__(self, version: ModelVersion, environment: Environment) -> None:
        refuse_settings(version, "options", "sampling", "predictions")

    def request(self, call: Call) -> Json:
        """Which attempt it is: nothing else decides."""
        return {"turn": call.turn_id, "number": call.number}

    def answer(self, call: Call) -> Response:
        """The empty text."""
        return Response("", usage=Usage(0, 0), metadata={"simulated": True})
