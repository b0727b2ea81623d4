"""What may be overlooked in an answer: presets, what a suite or a case adds to one, and what a question insists on."""

import re
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from eval_pipeline.table_comparison.relaxations import Relaxation, Set

Preset = Literal["exact", "expert", "bird", "spider", "defog", "livesqlbench"]

_R = Relaxation
PRESETS: Mapping[Preset, Set] = {
    "exact": frozenset({_R.COLUMN_NAMES, _R.COLUMN_ORDER, _R.TIE_ORDER}),
    "expert": frozenset(_R) - {_R.GIVEN_NAMES, _R.MISSING_COLUMNS, _R.CASE, _R.PERCENT},
    "bird": frozenset({_R.COLUMN_NAMES, _R.DUPLICATES, _R.ROW_ORDER, _R.TIE_ORDER}),
    "spider": frozenset({_R.COLUMN_NAMES, _R.COLUMN_ORDER}),
    "defog": frozenset({_R.COLUMN_NAMES, _R.COLUMN_ORDER, _R.EXTRA_COLUMNS, _R.ROW_ORDER, _R.TIE_ORDER, _R.TOLERANCE}),
    "livesqlbench": frozenset(
        {_R.COLUMN_NAMES, _R.DUPLICATES, _R.ROW_ORDER, _R.TIE_ORDER, _R.ROUNDING, _R.DATES, _R.TEXT_NUMBERS}
    ),
}
"""By the name of a preset, what it overlooks (docs/sql.md says why)."""

MINDS_THE_QUESTION: frozenset[Preset] = frozenset({"expert", "defog"})
"""The presets under which that counts on which a question insists."""

_EXTREME = (
    r"(best|worst|most|least"
    r"|(?!(?:request|interest|guest|forest|harvest|contest|protest|invest|arrest|digest|suggest|manifest|priest|west"
    r"|north-?west|south-?west|test|rest)\b)\w{3,}est)"
)
"""A superlative; other words that end like one are left out."""
_ORDER = re.compile(
    r"\b(sort(ed|ing)?(?! of\b)|order(ed|ing)? by|in (the )?(\w+ )?order(?! to\b)"
    r"|arrang(e|ed|ing)\b.{0,40} (by|in|from)|rank (the|them|these|all|each|every)"
    r"|ranked (by|from|in|according)|ranking (of|by|from)"
    r"|(de|a)scending(ly)?|alphabetical(ly)?|chronological(ly)?|a to z|z to a|a-z|z-a"
    rf"|{_EXTREME}[ -](\w+ ){{0,2}}first(?= *([.,;:?!)]|and|then|$))|{_EXTREME} (\w+ )?(at|on) (the )?top(?! of\b)"
    rf"|(start(ing)?|begin(ning)?) with the {_EXTREME}|(starting|beginning) from the {_EXTREME}"
    rf"|from (the )?{_EXTREME}\b[^.,;?]{{0,30}} to (the )?{_EXTREME}|{_EXTREME} (\w+ )?to (the )?{_EXTREME})\b",
    re.IGNORECASE,
)
_DECIMALS = re.compile(
    r"\b(decimals|decimal (places?|digits?|points?)|(one|1)[ -]decimal|d\.p\.|\d ?dp|rounded"
    r"|round (it |them |(the|each|all|every|your)( \w+){1,4} )?(to|up|down|off)"
    r"|nearest (cent|dollar|euro|percent|integer|whole|tenth|ten|hundred|hundredth|thousand|million)"
    r"|digits after|significant (digits|figures))(?!\w)",
    re.IGNORECASE,
)
_DISTINCT = re.compile(
    r"\b(distinct|unique(?! (id|identifiers?|key|code|number)\b)|de-?duplicated?"
    r"|(without|no|(remov|eliminat|exclud|ignor|drop)\w*) (any |all |the )?(duplicate[sd]?|repeat\w*|repetition\w*)"
    r"|(each|every)( \w+){1,3} once)\b",
    re.IGNORECASE,
)
_INSISTS = ((_ORDER, _R.ROW_ORDER), (_DECIMALS, _R.ROUNDING), (_DISTINCT, _R.DUPLICATES))


class Contract(BaseModel):
    """What counts as right, as a suite or a case writes it: `expert`, or `{preset: expert, insist: [duplicates]}`.

    Attributes:
        preset: what is overlooked to begin with.
        overlook: is overlooked as well, even if the question insists on it.
        insist: is not overlooked.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    preset: Preset = "expert"
    overlook: tuple[Relaxation, ...] = ()
    insist: tuple[Relaxation, ...] = ()

    @model_validator(mode="after")
    def _says_one_thing(self) -> "Contract":
        if both := sorted({*self.overlook} & {*self.insist}):
            raise ValueError(f"expected '{both[0]}' in 'overlook' or in 'insist', found in both")
        return self

    def overlooked(self, insisted: Collection[Relaxation] = ()) -> Set:
        """Returns what is overlooked in answers to a question that insists on something, see `insisted_by`.

        Where decimals count, a large number without them is not close enough either.
        """
        counts = frozenset(insisted) if self.preset in MINDS_THE_QUESTION else frozenset()
        counts |= frozenset(self.insist)
        if _R.ROUNDING in counts & PRESETS[self.preset]:
            counts |= {_R.TOLERANCE}
        return (PRESETS[self.preset] - counts | frozenset(self.overlook)) - frozenset(self.insist)

    def insisted(self, question: str) -> Set:
        """Returns on what a question insists by its words, and this contract whatever they are."""
        return (insisted_by(question) | frozenset(self.insist)) - frozenset(self.overlook)

    def with_case(self, own: "Contract | None") -> "Contract":
        """Returns the contract of a case: the suite's, with what the case itself writes."""
        if own is None:
            return self
        preset = own.preset if "preset" in own.model_fields_set else self.preset
        insist = {*self.insist, *own.insist} - {*own.overlook}
        overlook = {*self.overlook, *own.overlook} - {*own.insist}
        return Contract(preset=preset, overlook=tuple(sorted(overlook)), insist=tuple(sorted(insist)))


def _written_out(value: Any) -> Any:
    return {"preset": value} if isinstance(value, str) else value


WrittenContract = Annotated[Contract, BeforeValidator(_written_out)]
"""A field of a suite or a case; the name of a preset stands for itself."""


def insisted_by(question: str) -> Set:
    """Returns what a question asks for by its words: an order of rows, a number of decimals, no row twice."""
    return frozenset(relaxation for pattern, relaxation in _INSISTS if pattern.search(question))


NONE = "none"
"""The empty set of relaxations in a label."""


def as_label(ways: Collection[Collection[str]]) -> str | None:
    """Returns sets of relaxations as one text, such as `duplicates, extra_columns | rounding`; None without any.

    Names and sets are in the order of the alphabet.
    """
    return " | ".join(sorted(", ".join(sorted(one)) or NONE for one in ways)) or None


def ways_of(label: str | None) -> tuple[frozenset[str], ...]:
    """Returns the sets of relaxations that a label names, see `as_label`."""
    return tuple(frozenset(one.split(", ")) - {NONE} for one in label.split(" | ")) if label else ()


def excess(ways: Collection[Collection[str]], overlooked: Collection[str]) -> frozenset[str]:
    """Returns what would have to be overlooked as well, by the one of the ways that needs the least; empty for none."""
    missing = (frozenset(one) - {*overlooked} for one in ways)
    return min(missing, key=lambda one: (len(one), sorted(one)), default=frozenset())


def contract_line(relaxations: Collection[str]) -> str:
    """Returns what a suite or a case has to write to overlook these as well."""
    return f"compare: {{overlook: [{', '.join(sorted(relaxations))}]}}"
