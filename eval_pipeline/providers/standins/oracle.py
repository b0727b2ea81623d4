"""The stand-ins `oracle` and `null`: always the gold answer, whose score below 1.0 is our fault, and never one."""

from typing import ClassVar

from eval_pipeline.core.model import Json, Response, Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Call, Environment
from eval_pipeline.providers.standins.inprocess import StandIn, following, steps_taken
from eval_pipeline.providers.validation import refuse_settings


class OracleProvider(StandIn):
    """Answers with the gold artefact."""

    knows_gold: ClassVar[bool] = True

    def __init__(self, version: ModelVersion, environment: Environment) -> None:
        refuse_settings(version, "options", "sampling", "predictions")

    def request(self, call: Call) -> Json:
        """Returns turn, attempt number and a fingerprint of the gold."""
        asked: dict[str, Json] = {"turn": call.turn_id, "number": call.number, "gold": call.gold.fingerprint()}
        return asked | {"step": steps_taken(call)} if call.prompt.tools else asked

    def answer(self, call: Call) -> Response:
        """Returns the gold answer; where there are tools, its next call of one."""
        text, calls = following(call, call.gold.oracle())
        return Response(text, usage=Usage(0, 0), metadata={"simulated": True}, calls=calls)


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
