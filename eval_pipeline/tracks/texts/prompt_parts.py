"""Puts prompts together from named parts, by the track's own template or by a prompt of the suite (docs/prompts.md)."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING

from eval_pipeline.core.model import Case, Json, Message, Prompt, Turn
from eval_pipeline.core.reading.complaints import Complaint
from eval_pipeline.core.values import value

if TYPE_CHECKING:
    from eval_pipeline.core.covering.suite_prompts import SuitePrompt
    from eval_pipeline.tracks.base import Track

EXAMPLES = "examples"
"""The item of a template that stands for the few-shot examples."""
_PLACEHOLDER = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")

Item = Message | str
"""An item of a template: a message with placeholders, or the name of a part that consists of messages."""


@value
class PromptParts:
    """The parts of a turn's prompt by name, and the template by which the track puts them together.

    Attributes:
        template: the track's own.
        texts: the text for each placeholder; empty if the turn has none.
        messages: the messages for each item of that name.
        shared: names of the parts that are the same in all prompts of cases with equal `prefix_key`.
        question: names of the placeholders with the question; a template has one of them.
        answer_schema: as in `Prompt`.
    """

    template: tuple[Item, ...]
    texts: Mapping[str, str]
    messages: Mapping[str, Sequence[Message]] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    question: tuple[str, ...] = ("question",)
    answer_schema: Mapping[str, Json] | None = None

    def prompt(self, added: "SuitePrompt | None" = None) -> Prompt:
        """Returns the prompt in the track's own template, or by a prompt of the suite.

        A paragraph of which all placeholders are empty is left out, and so is a message that is empty without it.
        """
        template, further = self.template if added is None else self._template(added), dict(self.messages)
        if added is not None:
            pairs = ((Message("user", one.question), Message("assistant", one.answer)) for one in added.examples)
            further[EXAMPLES] = [*further.get(EXAMPLES, ()), *(message for pair in pairs for message in pair)]
        made: list[Message] = []
        shared, is_shared = 0, True
        for item in template:
            if isinstance(item, str):
                made += further.get(item, ())
                names = frozenset({item} - {EXAMPLES})
            else:
                text = self._filled(item.text)
                made += [Message(item.role, text)] if text is not None else []
                names = _names(item.text)
            is_shared = is_shared and names <= self.shared
            shared = len(made) if is_shared else shared
        return Prompt(tuple(made), shared, self.answer_schema)

    def _filled(self, text: str) -> str | None:
        """Returns a message's text; None if nothing is left of it."""
        kept = []
        for pieces in _paragraphs(text):
            names = pieces[1::2]
            told = [self.texts.get(name, "") for name in names]
            if not names or any(told) or not set(names).isdisjoint(self.question):
                filled = list(pieces)
                filled[1::2] = told
                kept.append("".join(filled))
        return "\n\n".join(kept) if kept else None

    def _template(self, added: "SuitePrompt") -> Sequence[Item]:
        if added.template:
            return [item for _, item in added.texts()]
        items, around = list(self.template), (added.before, added.after)
        if any(around):
            first = next((n for n, item in enumerate(items) if getattr(item, "role", "") == "system"), None)
            own = "" if first is None else items.pop(first).text  # type: ignore[union-attr]
            items.insert(first or 0, Message("system", "\n\n".join(filter(None, (added.before, own, added.after)))))
        if added.instructions:
            asks = next(n for n, item in enumerate(items) if isinstance(item, Message) and self._asks(item))
            items[asks] = Message(items[asks].role, f"{items[asks].text}\n\n{added.instructions}")  # type: ignore[union-attr]
        return items

    def _asks(self, item: Item) -> bool:
        return isinstance(item, Message) and any(name in self.question for name in placeholders(item.text))

    def complaints(self, added: "SuitePrompt", further: Collection[str] = ()) -> Iterator[Complaint]:
        """Yields what is wrong with a prompt of the suite; `further` names placeholders that other cases have."""
        known = {*self.texts, *further}
        for place, item in added.texts():
            if isinstance(item, str):
                if item not in {*self.messages, EXAMPLES}:
                    parts = ", ".join(sorted({*self.messages, EXAMPLES}))
                    yield Complaint(place, f"no part '{item}' consists of messages; expected {parts}, or `role: text`")
                continue
            for name in placeholders(item.text):
                if name in self.messages or name == EXAMPLES:
                    yield Complaint(place, f"'{name}' stands for messages; write `- {name}` as an item of the template")
                elif name not in known:
                    told = ", ".join(sorted(known))
                    yield Complaint(place, f"there is no placeholder {{{{ {name} }}}}; expected one of {told}")
        if added.template and not any(self._asks(item) for _, item in added.texts()):
            wanted = " or ".join(f"{{{{ {name} }}}}" for name in self.question)
            yield Complaint(("template",), f"leaves out the question; expected {wanted} in a message")
        if added.template and added.examples and EXAMPLES not in added.template:
            yield Complaint(("examples",), f"the template leaves them out; expected `- {EXAMPLES}` among its items")


@value
class Prompting:
    """How the prompts of a model version on a suite are made.

    Attributes:
        version: the track's prompt version.
        added: the prompt of the suite; None: the track's own.
    """

    version: str
    added: "SuitePrompt | None" = None

    def prompt(self, track: "Track", case: Case, turn: Turn, history: Sequence[str]) -> Prompt:
        """Returns the prompt of a turn; `history` as in `Task.prompt`."""
        if self.added is None:
            return track.prompt(case, turn, history, self.version)
        return track.prompt_parts(case, turn, history, self.version).prompt(self.added)

    def told(self) -> str:
        """Returns what decides the prompts: the prompt version, and the hash of the suite's prompt."""
        return self.version if self.added is None else f"{self.version} {self.added.hash()}"


def parts_of(prompt: Prompt) -> PromptParts:
    """Returns the parts of a prompt that was built as a whole: `system`, `context` (messages) and `question`."""
    *first, question = prompt.messages
    systems = [message.text for message in first if message.role == "system"]
    context = [message for message in first if message.role != "system"]
    texts = {"system": "\n\n".join(systems), "question": question.text}
    shared = [*["system"] * (prompt.shared > 0), *["context"] * (prompt.shared >= len(first))]
    template = (Message("system", "{{ system }}"), EXAMPLES, "context", Message("user", "{{ question }}"))
    return PromptParts(template, texts, {"context": context}, frozenset(shared), answer_schema=prompt.answer_schema)


def placeholders(text: str) -> list[str]:
    """Returns the names of the placeholders in a text, in order."""
    return [name for pieces in _paragraphs(text) for name in pieces[1::2]]


@lru_cache(maxsize=512)
def _names(text: str) -> frozenset[str]:
    return frozenset(placeholders(text))


@lru_cache(maxsize=512)
def _paragraphs(text: str) -> tuple[tuple[str, ...], ...]:
    """Returns each paragraph as texts and names of placeholders, in turns."""
    return tuple(tuple(_PLACEHOLDER.split(paragraph)) for paragraph in text.split("\n\n"))
