"""Distinguishes an endpoint that cannot be reached at all from one with occasional connection failures."""

from eval_pipeline.core.model import CallErrorKind
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import CallError, FatalCallError

_TRIES = 3
_FEWEST_QUESTIONS = 3


class Reachability:
    """Ends a run whose endpoint cannot be reached; otherwise every question would be retried until its deadline.

    Once any try was answered, even by an error, connection failures are left to the retry policy.
    """

    def __init__(self, version: ModelVersion) -> None:
        """Starts with no tries."""
        self._version = version
        self._reached = False
        self._unreached: set[str] = set()

    def answered(self) -> None:
        """Records that a try was answered."""
        self._reached = True

    def failed(self, key: str, tries: int, error: CallError, in_flight: int) -> None:
        """Records that a try failed.

        Args:
            key: key of the question.
            tries: number of tries of that question so far.
            error: the failure.
            in_flight: number of questions that may be asked at once.

        Raises:
            FatalCallError: no connection has ever succeeded, although as many different questions as may be asked at
                once (at least three) have been tried three times each.
        """
        if error.kind is CallErrorKind.TIMEOUT:
            return  # a time-out does not tell whether the endpoint was reached
        if error.kind is not CallErrorKind.CONNECTION:
            self._reached = True
        if self._reached or tries < _TRIES:
            return
        self._unreached.add(key)
        if len(self._unreached) >= max(in_flight, _FEWEST_QUESTIONS):
            address = self._version.options.get("base_url")
            raise FatalCallError(
                f"model version '{self._version.name}': provider '{self._version.provider}' cannot be reached"
                f"{f' at {address}' if address else ''} ({len(self._unreached)} questions, each tried {_TRIES} times; "
                f"the last one: {error.message})"
            )
