"""The stand-in `null`: never answers.

A score above 0.0 (for a non-empty gold answer) reveals a fault of the pipeline.
"""

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
        """Returns turn and attempt number, the only things that the answer depends on."""
        return {"turn": call.turn_id, "number": call.number}

    def answer(self, call: Call) -> Response:
        """Returns an empty response."""
        return Response("", usage=Usage(0, 0), metadata={"simulated": True})
