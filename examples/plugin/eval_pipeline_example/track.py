"""A track: a quantity has to be found in a short text, answered as `<number> <unit>`, such as `12.5 kg`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from eval_pipeline.core.ids import turn_id
from eval_pipeline.core.model import Attempt, Case, ErrorClass, Evidence, Json, Message, Prompt, Turn
from eval_pipeline.core.numbers import number_text
from eval_pipeline.store.schemas import Column
from eval_pipeline.tracks.base import ArtefactError, Metric, Task
from eval_pipeline.tracks.capabilities import Damageable
from eval_pipeline.tracks.options import checked_form

_FORM = re.compile(r"(-?\d+(?:\.\d+)?)\s*([^\W\d]+|%)")
_ASKED = "Answer the question from the text, with a number and its unit alone, such as: 12.5 kg"


@dataclass(frozen=True, slots=True)
class Quantity:
    """Gold and artefact."""

    number: float
    unit: str

    def __str__(self) -> str:
        return f"{number_text(self.number)} {self.unit}"


def read_quantity(text: str) -> Quantity:
    """The quantity that a text is. Raises ValueError where it is none."""
    if found := _FORM.fullmatch(text.strip()):
        return Quantity(float(found[1]), found[2].lower())
    raise ValueError(f"expected a number and its unit, such as 12.5 kg, found '{text[:40]}'")


class QuantityFile(BaseModel):
    """A case as the suite's file has it."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(min_length=1)
    text: str
    question: str
    answer: Annotated[Quantity, BeforeValidator(read_quantity)]


def quantity_match(said: Quantity | None, gold: Quantity) -> bool:
    """Number and unit are right."""
    return said == gold


def number_match(said: Quantity | None, gold: Quantity) -> bool:
    """The number is right."""
    return said is not None and said.number == gold.number


class QuantityTask(Task[str, Quantity, Quantity], Damageable[str, Quantity]):
    """A case is a text with one question."""

    name = "quantities"
    metrics = (
        Metric("quantity_match", quantity_match, "boolean", "Number and unit are right; never NULL."),
        Metric("number_match", number_match, "boolean", "The number is right; never NULL."),
    )
    feature_columns = (Column("several_numbers", "BOOLEAN", "The text has more than one number; never NULL."),)
    failure_modes = ("wrong_number", "wrong_unit", "no_answer")

    def read_case(self, raw: Mapping[str, Json], suite: str, file: str, line: int, shared: Any = None) -> Case:
        """See `QuantityFile`."""
        form = checked_form(QuantityFile, raw)
        turn = Turn(turn_id(suite, form.id, 0), 0, form.question, form.answer)
        features = {"several_numbers": len(re.findall(r"\d[\d.]*", form.text)) > 1}
        return Case(form.id, form.id, (), features, form.text, (turn,), file, line)

    def prompt(self, case: Case, turn: Turn, history: Sequence[str], version: str) -> Prompt:
        """What is wanted, the text and the question."""
        return Prompt((Message("system", _ASKED), Message("user", f"{case.context}\n\n{turn.question}")), shared=1)

    def parse(self, text: str, *, recorded: bool) -> Quantity:
        """The quantity that a response is."""
        try:
            return read_quantity(text)
        except ValueError as error:
            raise ArtefactError(ErrorClass.VALUE, str(error)) from error

    def artefact_from_json(self, value: Json) -> Quantity:
        """`artefact_json` makes an object of any dataclass."""
        return Quantity(**value)

    def values(
        self, case: Case, turn: Turn, attempts: Sequence[Attempt], evidence: Sequence[Evidence]
    ) -> dict[str, Any]:
        """What metrics take; without a quantity in the last response there is no artefact."""
        return {"said": attempts[-1].artefact, "gold": turn.gold}

    def expected_text(self, turn: Turn) -> str:
        """The quantity."""
        return str(turn.gold)

    def answer_text(self, value: Json) -> str:
        """The quantity."""
        return str(Quantity(**value))

    def oracle(self, turn: Turn) -> str:
        """The quantity."""
        return str(turn.gold)

    def damage(self, case: Case, turn: Turn, mode: str, rng: Random) -> str | None:
        """Another number, another unit, or nothing."""
        if mode == "wrong_number":
            return str(Quantity(turn.gold.number + rng.randint(1, 9), turn.gold.unit))
        return str(Quantity(turn.gold.number, f"x{turn.gold.unit}")) if mode == "wrong_unit" else ""


TRACK = QuantityTask()
