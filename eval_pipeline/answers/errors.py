"""The error of a response in which there is no answer of the wanted form."""

from eval_pipeline.core.model import ErrorClass


class ArtefactError(Exception):
    """A response does not contain an artefact in the track's form."""

    def __init__(self, error_class: ErrorClass, message: str) -> None:
        super().__init__(message)
        self.error_class = error_class
        self.message = message
