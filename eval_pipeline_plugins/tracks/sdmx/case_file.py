"""The file format of a case (docs/sdmx.md), and its conversion to the data model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from eval_pipeline.core.ids import turn_id
from eval_pipeline.core.model import Case, Json, Turn
from eval_pipeline.tracks.base import CaseError
from eval_pipeline.tracks.options import checked_form
from eval_pipeline_plugins.tracks.sdmx.catalogue.catalogue import Catalogue
from eval_pipeline_plugins.tracks.sdmx.responses.execute import aliases, resolved
from eval_pipeline_plugins.tracks.sdmx.responses.selection import Selection, merged
from eval_pipeline_plugins.tracks.sdmx.search.retrieval import Candidates, Retriever

_FORMAT = ConfigDict(extra="forbid", frozen=True)
_Text = Annotated[str, Field(min_length=1)]
_Location = tuple[int | str, ...]


def _any_turns(turns: tuple[Any, ...]) -> tuple[Any, ...]:
    # Checked here, because pydantic would report the minimum length even for turns that exist but are wrong.
    if not turns:
        raise ValueError("expected at least 1 user turn")
    return turns


class TermFile(BaseModel):
    """A term of a target; id and name must both match."""

    model_config = _FORMAT

    id: _Text
    name: _Text


class DimensionFile(BaseModel):
    """A dimension of a target; without values, it is scored as if absent."""

    model_config = _FORMAT

    dimension_name: _Text
    values: tuple[TermFile, ...]


class DataSetFile(BaseModel):
    """A data set of a target; the rank is stored but not used."""

    model_config = _FORMAT

    dataset_id: _Text
    dimensions: tuple[DimensionFile, ...]
    indicator_rank_in_search: int | None = None


class AlternativeFile(BaseModel):
    """Another target that is accepted, too."""

    model_config = _FORMAT

    indicator_selection: tuple[DataSetFile, ...]


class TargetFile(BaseModel):
    """What should be selected; may be empty, and is if the question is out of scope.

    `tool_calls` and `datasets_selection` are StatGPT's; they are kept for exports and not used.
    """

    model_config = _FORMAT

    indicator_selection: tuple[DataSetFile, ...] = ()
    alternatives: tuple[AlternativeFile, ...] = ()
    is_out_of_scope: bool = False
    tool_calls: tuple[Any, ...] = ()
    datasets_selection: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _nothing_out_of_scope(self) -> "TargetFile":
        if self.is_out_of_scope and (self.indicator_selection or self.alternatives):
            raise ValueError("a question that is out of scope has no indicator_selection and no alternatives")
        return self


class RejectedFile(BaseModel):
    """A data set that the authors left out, and why."""

    model_config = _FORMAT

    dataset_id: _Text
    reason: str = ""


class SdmxTurnFile(BaseModel):
    """A user's request with its target."""

    model_config = _FORMAT

    role: Literal["user"]
    content: _Text
    target: TargetFile


class SdmxCaseFile(BaseModel):
    """One conversation."""

    model_config = _FORMAT

    id: _Text
    name: _Text
    tags: tuple[str, ...] = ()
    comments: str = ""
    source: str = ""
    rejected_datasets: tuple[str | RejectedFile, ...] = ()
    conversation: Annotated[tuple[SdmxTurnFile, ...], AfterValidator(_any_turns)]


@dataclass(frozen=True, slots=True)
class SdmxContext:
    """The context of a case's turns.

    Attributes:
        name: name of the case, for display.
        case_id: id of the case.
        retriever: the suite's retriever, with its catalogue.
        requests: for each turn, the text for which candidates are retrieved: its question and those before it.
    """

    name: str
    case_id: str
    retriever: Retriever
    requests: tuple[str, ...]

    @property
    def catalogue(self) -> Catalogue:
        """The suite's catalogue."""
        return self.retriever.catalogue

    def candidates(self, turn: Turn) -> Candidates:
        """Returns the candidates offered to the model for the turn."""
        given = self.retriever.given
        if given is not None:
            return given.candidates(self.case_id, turn.index)
        return self.retriever.candidates(self.requests[turn.index])


@dataclass(frozen=True, slots=True)
class SdmxGold:
    """The gold of a turn.

    Attributes:
        alternatives: other targets that are accepted, too.
        out_of_scope: whether the question is out of scope.
        aliases: data sets whose ids the case file writes in another way: the catalogue's id → the file's.
        retriever: the suite's retriever, for damaging the oracle's answer.
    """

    target: Selection
    alternatives: tuple[Selection, ...]
    aliases: Mapping[str, str]
    retriever: Retriever = field(repr=False, compare=False)
    out_of_scope: bool = False

    @property
    def accepted(self) -> tuple[Selection, ...]:
        """The target and its alternatives."""
        return self.target, *self.alternatives


SdmxTurn: TypeAlias = Turn[SdmxGold]
SdmxCase: TypeAlias = Case[SdmxContext, SdmxGold]


def read_case(raw: Mapping[str, Json], suite: str, file: str, line: int, retriever: Retriever) -> SdmxCase:
    """Parses a case from the suite's file format.

    Raises:
        CaseError: a field is wrong, or a target uses data sets, dimensions or terms that are not in the catalogue; the
            message names all of them. Or the suite gives candidates in a file of its own, and a turn has none there.
    """
    parsed = checked_form(SdmxCaseFile, raw)
    problems = [
        (("conversation", index, "target", *at, "indicator_selection", *place), message)
        for index, turn in enumerate(parsed.conversation)
        for at, entries in _all_entries(turn.target)
        for place, message in _target_problems(entries, retriever.catalogue)
    ]
    problems += _given_problems(parsed, retriever)
    if problems:
        raise CaseError(problems)
    golds = [_gold(turn.target, retriever) for turn in parsed.conversation]
    questions = [turn.content for turn in parsed.conversation]
    turns = tuple(
        Turn(turn_id(suite, parsed.id, index), index, question, gold)
        for index, (question, gold) in enumerate(zip(questions, golds, strict=True))
    )
    requests = tuple("\n".join(questions[: index + 1]) for index in range(len(questions)))
    return Case(
        id=parsed.id,
        cluster=parsed.id,
        tags=parsed.tags,
        features=_features(parsed, [gold.target for gold in golds]),
        context=SdmxContext(parsed.name, parsed.id, retriever, requests),
        turns=turns,
        source_file=file,
        source_line=line,
    )


def _given_problems(parsed: SdmxCaseFile, retriever: Retriever) -> Iterator[tuple[_Location, str]]:
    """Yields turns for which the suite's own candidates, if it has some, are missing or for other questions."""
    if retriever.given is not None:
        questions = [turn.content for turn in parsed.conversation]
        for index in range(len(questions)):
            problem = retriever.given.problem(parsed.id, index, questions[: index + 1])
            if problem is not None:
                yield ("conversation", index), problem


def _all_entries(target: TargetFile) -> Iterator[tuple[_Location, Sequence[DataSetFile]]]:
    """Yields the data sets of the target and of each alternative, with the place in the target."""
    yield (), target.indicator_selection
    for index, other in enumerate(target.alternatives):
        yield ("alternatives", index), other.indicator_selection


def _gold(target: TargetFile, retriever: Retriever) -> SdmxGold:
    catalogue = retriever.catalogue
    told = [_selection(entries) for _, entries in _all_entries(target)]
    first, *others = (resolved(selection, catalogue) for selection in told)
    written = {meant: asked for selection in told for meant, asked in aliases(selection, catalogue).items()}
    return SdmxGold(first, tuple(others), written, retriever, target.is_out_of_scope)


def _selection(entries: Sequence[DataSetFile]) -> Selection:
    return merged(
        ((entry.dataset_id, found.dimension_name), [(term.id, term.name) for term in found.values])
        for entry in entries
        for found in entry.dimensions
    )


def _features(parsed: SdmxCaseFile, targets: Sequence[Selection]) -> dict[str, bool | int | str]:
    return {
        "has_several_data_sets": any(len(target.data_sets) > 1 for target in targets),
        "has_empty_target": any(not target.terms for target in targets),
        "num_dialogue_turns": len(targets),
        "rejected_data_sets": ", ".join(
            found if isinstance(found, str) else found.dataset_id for found in parsed.rejected_datasets
        ),
    }


def _target_problems(entries: Sequence[DataSetFile], catalogue: Catalogue) -> Iterator[tuple[_Location, str]]:
    for place, entry in enumerate(entries):
        data_set = catalogue.meant(entry.dataset_id)
        problem = catalogue.data_set_problem(data_set)
        if problem is not None:
            yield (place, "dataset_id"), problem
            continue
        for index, found in enumerate(entry.dimensions):
            at: _Location = (place, "dimensions", index)
            problem = catalogue.dimension_problem(data_set, found.dimension_name)
            if problem is not None:
                yield (*at, "dimension_name"), problem
                continue
            for number, term in enumerate(found.values):
                wrong = _term_problem(data_set, found.dimension_name, term, catalogue)
                if wrong is not None:
                    yield (*at, "values", number, wrong[0]), wrong[1]


def _term_problem(data_set: str, dimension: str, term: TermFile, catalogue: Catalogue) -> tuple[str, str] | None:
    """Returns field and sentence if the catalogue lacks a term of the target."""
    problem = catalogue.term_problem(data_set, dimension, term.id)
    if problem is not None:
        return "id", problem
    names = [known.name for known in catalogue.find(data_set, dimension, term.id)]
    if term.name in names:
        return None
    shown = "' or '".join(names)
    return "name", f"the catalogue calls '{term.id}' of {data_set} {dimension} '{shown}', the target '{term.name:.120}'"
