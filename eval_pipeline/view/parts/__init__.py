"""The sections of the page about a turn, in their order. Add one with a file here and a line in the tuple."""

from eval_pipeline.view.part import Part
from eval_pipeline.view.parts import attempts, cards, conversation, history, judgement, metrics, review

PARTS: tuple[Part, ...] = (
    cards.PART,
    review.PART,
    attempts.PART,
    metrics.PART,
    judgement.PART,
    conversation.PART,
    history.PART,
)
