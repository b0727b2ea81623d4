"""Tells an endpoint that cannot be reached at all from one whose connections fail now and then."""

from eval_pipeline.core.model import CallErrorKind
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.providers.base import CallError, FatalCallError

_TRIES = 3
_FEWEST_QUESTIONS = 3


class Reachability:
    """Ends a run at whose endpoint nobody is: else every question would be tried until its deadline, one after another.

    Once anything was answered, if only by an error, failing connections are the business of retries alone.
    """

    def __init__(self, version: ModelVersion) -> None:
        """Nothing was tried yet."""
        self._version = version
        self._reached = False
        self._unreached: set[str] = set()

    def answered(self) -> None:
        """A try was answered."""
        self._reached = True

    def failed(self, key: str, tries: int, error: CallError, in_flight: int) -> None:
        """A try failed.

        Args:
            key: of the question.
            tries: of that question so far.
            error: how this one failed.
            in_flight: questions that may be asked at once.

        Raises:
            FatalCallError: as many different questions as may be asked at once, three at least, have each been tried
                three times, and no connection of this caller has ever come about.
        """
        if error.kind is CallErrorKind.TIMEOUT:
            return  # says neither
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
