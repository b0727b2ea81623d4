"""A prompt of a suite: a named variant of the track's prompt (docs/prompts.md)."""

from collections.abc import Iterator
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from eval_pipeline.core.ids import json_hash
from eval_pipeline.core.model import Json, Message
from eval_pipeline.core.reading.complaints import told_value

_ROLES = ("system", "user", "assistant")
Text = Annotated[str, Field(max_length=20_000), AfterValidator(str.strip)]


class PromptExample(BaseModel):
    """A few-shot example: what the user asks, and what the model should write."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: Annotated[Text, Field(min_length=1)]
    answer: Annotated[Text, Field(min_length=1)]


class SuitePrompt(BaseModel):
    """A named prompt of a suite: additions to the prompt of the track, or a whole template.

    Attributes:
        before, after: texts before and after the system message of the track.
        instructions: text after the question.
        examples: shown as earlier turns, where the template has the item `examples`.
        template: messages, each as `role: text`, and names of parts that are messages, such as `history`.
        nightly: whether the nightly schedule asks with it, too.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    before: Text = ""
    after: Text = ""
    instructions: Text = ""
    examples: Annotated[tuple[PromptExample, ...], Field(max_length=100)] = ()
    template: Annotated[tuple[Any, ...], Field(max_length=100)] = ()
    nightly: bool = False

    @field_validator("template", mode="after")
    @classmethod
    def _items(cls, items: tuple[Any, ...]) -> tuple[Any, ...]:
        for item in items:
            is_message = isinstance(item, dict) and len(item) == 1
            if not isinstance(item, str) and not (
                is_message and all(role in _ROLES and isinstance(text, str) for role, text in item.items())
            ):
                raise ValueError(
                    f"expected messages such as `user: a text` ({', '.join(_ROLES)}) or names of parts such as "
                    f"`history`, found {told_value(item)}"
                )
        if items and not (isinstance(items[-1], dict) and "user" in items[-1]):
            raise ValueError(f"the last message has to be the user's, found {told_value(items[-1])}")
        return tuple(item if isinstance(item, str) else {r: text.strip() for r, text in item.items()} for item in items)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        added = [name for name in ("before", "after", "instructions") if getattr(self, name)]
        if self.template and added:
            raise ValueError(f"'{added[0]}' is an addition to the track's prompt; write its text into 'template'")
        if not self.template and not added and not self.examples:
            raise ValueError("says nothing; expected before, after, instructions, examples or a template")
        return self

    def definition(self) -> dict[str, Json]:
        """Returns what decides the prompts that it makes, as JSON."""
        return self.model_dump(mode="json", exclude={"nightly"}, exclude_defaults=True)

    def hash(self) -> str:
        """Returns the hash of `definition`, which is part of what an evaluation is (settings of `generations`)."""
        return json_hash(self.definition())

    def texts(self) -> Iterator[tuple[tuple[str | int, ...], Message | str]]:
        """Yields what may have placeholders, as messages or names of parts, each with its place in the prompt."""
        for name in ("before", "after", "instructions"):
            if text := getattr(self, name):
                yield (name,), Message("", text)
        for place, item in enumerate(self.template):
            if isinstance(item, str):
                yield ("template", place), item
            else:
                yield from ((("template", place, role), Message(role, text)) for role, text in item.items())
