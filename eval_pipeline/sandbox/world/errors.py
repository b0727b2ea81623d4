"""What can go wrong with a world."""

from eval_pipeline.core.system.stopped import note_stopped


class WorldError(Exception):
    """The jail does not answer, or its answer has the wrong form; the attempt cannot go on."""

    def __init__(self, why: str) -> None:
        """Counts as something that was stopped: it says nothing about what was done."""
        super().__init__(why)
        note_stopped()
