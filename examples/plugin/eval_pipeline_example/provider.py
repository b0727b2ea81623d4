"""A provider that says the same to everything, as a model version states it in `options.answer`."""

from pydantic import Field

from eval_pipeline.core.model import Json, Response, Usage
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import Call, Environment
from eval_pipeline.providers.standins.inprocess import StandIn
from eval_pipeline.providers.validation import Settings, read_settings, refuse_settings


class ConstantSettings(Settings):
    """`options` of the model version."""

    answer: str = Field(min_length=1)


class ConstantProvider(StandIn):
    """Always gives the same answer. Its traits are those of stand-ins: nobody is asked, nobody charges."""

    def __init__(self, version: ModelVersion, environment: Environment) -> None:
        refuse_settings(version, "sampling", "predictions")
        self._answer, self._code = read_settings(ConstantSettings, version).answer, environment.code

    def request(self, call: Call) -> Json:
        """All that decides the answer, this code too."""
        return {"code": self._code, "turn": call.turn_id, "number": call.number, "answer": self._answer}

    def answer(self, call: Call) -> Response:
        """The answer."""
        return Response(self._answer, usage=Usage(1, 1), metadata={"simulated": True})
