"""Cards as lines of text, as the golden files have them: a marked text is `text{mark}`, with its note behind it."""

from collections.abc import Sequence

from eval_pipeline.tracks.shown.cards import (
    BesideCard,
    Card,
    CardCell,
    CodeCard,
    DifferenceCard,
    FactsCard,
    TableCard,
    Text,
    TextCard,
    TimelineCard,
)


def card_lines(cards: Sequence[Card]) -> dict[str, list[str]]:
    """The lines of each card by its title; those of cards side by side under both titles."""
    found: dict[str, list[str]] = {}
    for card in cards:
        if isinstance(card, BesideCard):
            found[card.title] = _remark(card.remark)
            found |= {f"{card.title}: {name}": lines for name, lines in card_lines(card.cards).items()}
        else:
            assert card.title not in found, f"two cards are called {card.title}"
            found[card.title] = [*_remark(card.remark), *_lines(card)]
    return found


def _remark(remark: str) -> list[str]:
    return [f"({remark})"] if remark else []


def _lines(card: Card) -> list[str]:
    match card:
        case TableCard():
            assert all(len(row) == len(card.columns) for row in card.rows)
            rows = [" | ".join(map(_text, row)) for row in (card.columns, *card.rows)]
            return [*rows, f"and {card.left_out}"] if card.left_out else rows
        case FactsCard():
            return [f"{name}: {_text(text)}" for name, text in card.facts]
        case CodeCard():
            marked = card.marked or {}
            return [
                f"{line}{{{marked[n]}}}" if n in marked else line for n, line in enumerate(card.code.split("\n"), 1)
            ]
        case TextCard():
            return "".join(map(_text, card.pieces)).split("\n")
        case TimelineCard():
            return [f"{step.place} {step.by}: {step.call} -> {step.result} {step.error}" for step in card.steps]
        case DifferenceCard():
            return [f"{card.before_name}: {card.before}", f"{card.after_name}: {card.after}"]
    raise AssertionError(card)


def _text(text: Text) -> str:
    if not isinstance(text, CardCell):
        return text
    marked = f"{text.text}{{{text.mark}}}" if text.mark else text.text
    return f"{marked} ({text.note})" if text.note else marked
