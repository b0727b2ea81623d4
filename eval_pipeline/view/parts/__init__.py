"""The sections of the page about a turn, in order. To add one, add a module here and a line in the tuple."""

from eval_pipeline.view.part import Part
from eval_pipeline.view.parts import (
    attempts,
    cards,
    conversation,
    history,
    judgement,
    metrics,
    prompt_differences,
    review,
)

PARTS: tuple[Part, ...] = (
    cards.PART,
    review.PART,
    attempts.PART,
    metrics.PART,
    judgement.PART,
    prompt_differences.PART,
    conversation.PART,
    history.PART,
)
