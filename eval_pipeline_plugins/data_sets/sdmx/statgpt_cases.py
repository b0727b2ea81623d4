"""The forms of StatGPT's case files: conversations with targets, and questions with candidate data sets.

Sources: `statgpt/mcp_lite/HANDOFF.md` and `broad_testcases/` of epam/statgpt-backend.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.reading.complaints import complaints, dotted
from eval_pipeline.core.reading.foreign import MOST_DOCUMENT_BYTES, SafeLoader, check_yaml, read_text

SUFFIXES = (".yaml", ".yml")
_FOREIGN = ConfigDict(extra="forbid")
"""A field that nobody knows is an error: if it stands for the target, the gold would be to select nothing."""
_Unused = Annotated[Any, Field(exclude=True)]
"""What StatGPT's files tell about how a case was made; it is allowed, and not used."""
_Text = Annotated[str, Field(min_length=1)]


class ForeignTerm(BaseModel):
    """A term of a target."""

    model_config = _FOREIGN
    id: _Text
    name: _Text


class ForeignDimension(BaseModel):
    """A dimension of a target."""

    model_config = _FOREIGN
    dimension_name: _Text
    values: list[ForeignTerm]


class ForeignDataSet(BaseModel):
    """A data set of a target."""

    model_config = _FOREIGN
    dataset_id: _Text
    dimensions: list[ForeignDimension]
    indicator_rank_in_search: int | None = None


class ForeignAlternative(BaseModel):
    """Another target that is accepted, too; our own addition to the form."""

    model_config = _FOREIGN
    indicator_selection: list[ForeignDataSet]


class ForeignTarget(BaseModel):
    """What should be selected; nothing, if the question is out of scope."""

    model_config = _FOREIGN
    indicator_selection: list[ForeignDataSet] = []
    alternatives: list[ForeignAlternative] = []
    is_out_of_scope: bool = False
    tool_calls: list[Any] = []
    datasets_selection: dict[str, Any] = {}

    @field_validator("indicator_selection", "tool_calls", mode="before")
    @classmethod
    def _nothing(cls, given: Any) -> Any:
        return given or []

    @field_validator("datasets_selection", mode="before")
    @classmethod
    def _no_data_sets(cls, given: Any) -> Any:
        return given or {}


class ForeignTurn(BaseModel):
    """A message of the conversation; each of the user has a target, the others have none."""

    model_config = _FOREIGN
    role: Literal["user", "assistant", "system", "tool"]
    content: _Text
    target: ForeignTarget | None = None

    @model_validator(mode="after")
    def _one_target_a_question(self) -> "ForeignTurn":
        if self.role == "user" and self.target is None:
            raise ValueError("expected a 'target'; where nothing is to be selected, {is_out_of_scope: true}")
        if self.role != "user" and self.target is not None:
            raise ValueError(f"only a turn of role 'user' has a 'target', found one of role '{self.role}'")
        return self


class _Rejected(BaseModel):
    model_config = _FOREIGN
    dataset_id: _Text
    reason: str = ""


class ForeignCase(BaseModel):
    """A conversation with targets."""

    model_config = _FOREIGN
    id: str = ""
    name: str = ""
    tags: list[str] = []
    comments: str | None = ""
    source: str = ""
    rejected_datasets: list[str | _Rejected] = []
    conversation: list[ForeignTurn] = Field(min_length=1)

    @field_validator("conversation")
    @classmethod
    def _asked(cls, turns: list[ForeignTurn]) -> list[ForeignTurn]:
        if not any(turn.role == "user" for turn in turns):
            raise ValueError("expected a turn of role 'user'")
        return turns

    @property
    def rejected(self) -> list[Any]:
        """The rejected data sets in the form of our case files."""
        return [found if isinstance(found, str) else found.model_dump() for found in self.rejected_datasets]

    @property
    def targets(self) -> Iterator[ForeignDataSet]:
        """Every data set of every target, alternatives included."""
        for turn in self.conversation:
            if turn.target is not None:
                yield from turn.target.indicator_selection
                for other in turn.target.alternatives:
                    yield from other.indicator_selection


class _Pin(BaseModel):
    model_config = _FOREIGN
    dimension_name: _Text
    value: ForeignTerm | None = None
    values: list[ForeignTerm] = []


class _Candidate(BaseModel):
    """A data set that answers the question: with `dimensions`, or with a pin for each dimension."""

    model_config = _FOREIGN
    dataset_id: _Text
    indicator_rank_in_search: int | None = None
    dimensions: list[ForeignDimension] = []
    country_dim_pin: _Pin | None = None
    indicator_dim_pins: list[_Pin] = []
    other_pins: list[_Pin] = []
    indicator_name: _Unused = None
    interpretation: _Unused = None
    sample_data: _Unused = None

    @model_validator(mode="after")
    def _any_dimension(self) -> "_Candidate":
        if not self.dimensions and not self._pins:
            raise ValueError("expected 'dimensions', or 'country_dim_pin', 'indicator_dim_pins' and 'other_pins'")
        return self

    @property
    def _pins(self) -> list[_Pin]:
        country = [self.country_dim_pin] if self.country_dim_pin else []
        return [*country, *self.indicator_dim_pins, *self.other_pins]

    def data_set(self) -> ForeignDataSet:
        """Returns it as a data set of a target."""
        pinned = [
            ForeignDimension(
                dimension_name=pin.dimension_name, values=[*([pin.value] if pin.value else []), *pin.values]
            )
            for pin in self._pins
        ]
        rank = self.indicator_rank_in_search
        return ForeignDataSet(
            dataset_id=self.dataset_id, dimensions=[*self.dimensions, *pinned], indicator_rank_in_search=rank
        )

    def indicator_dimensions(self) -> Iterator[str]:
        """Yields the dimensions that are said to make the indicator, as `DATA_SET/DIMENSION`."""
        yield from (f"{self.dataset_id}/{pin.dimension_name}" for pin in self.indicator_dim_pins)


class RawCase(BaseModel):
    """A question with the data sets that answer it, as StatGPT's authors write it down."""

    model_config = _FOREIGN
    query: _Text
    candidate_datasets: list[_Candidate] = []
    rejected_datasets: list[str | _Rejected] = []
    tags: list[str] = []
    notes: list[str] = []
    caveats: list[str] = []
    search_queries_used: _Unused = None
    tool_call_count: _Unused = None

    def case(self, name: str) -> ForeignCase:
        """Returns it as a conversation of one turn; its name is that of its file."""
        target = ForeignTarget(
            indicator_selection=[found.data_set() for found in self.candidate_datasets],
            is_out_of_scope=not self.candidate_datasets,
        )
        return ForeignCase(
            id=name,
            name=name,
            tags=self.tags,
            comments="\n".join([*self.notes, *self.caveats]),
            rejected_datasets=self.rejected_datasets,
            conversation=[ForeignTurn(role="user", content=self.query, target=target)],
        )


def read_cases(source: Path) -> tuple[list[ForeignCase], list[str]]:
    """Reads a file, or every YAML file of a folder, each with any number of documents of either form.

    Returns:
        The cases, and the dimensions that raw cases say make the indicator, as `DATA_SET/DIMENSION`.

    Raises:
        InputError: lists every problem.
    """
    files = sorted(path for path in source.iterdir() if path.suffix in SUFFIXES) if source.is_dir() else [source]
    problems: list[Problem] = []
    cases: list[ForeignCase] = []
    indicators: dict[str, None] = {}
    for file in files:
        before = len(cases), len(problems)
        for line, document in _documents(file):
            form = RawCase if isinstance(document, dict) and "query" in document else ForeignCase
            try:
                found = form.model_validate(document)
            except ValidationError as error:
                problems += [
                    Problem(str(file), line, dotted(location), message) for location, message in complaints(error, form)
                ]
                continue
            if isinstance(found, RawCase):
                number = len(cases) - before[0]
                cases.append(found.case(f"{file.stem}_{number + 1}" if number else file.stem))
                indicators |= dict.fromkeys(id for one in found.candidate_datasets for id in one.indicator_dimensions())
            else:
                cases.append(found)
        if (len(cases), len(problems)) == before:
            problems.append(Problem(str(file), 1, "", "expected YAML documents with 'conversation', found none"))
    if not files:
        problems.append(Problem(str(source), None, "", f"expected files of cases ({', '.join(SUFFIXES)}), found none"))
    if problems:
        raise InputError(problems)
    return cases, list(indicators)


def _documents(file: Path) -> Iterator[tuple[int, Any]]:
    """Yields each document with its line. Raises InputError if the file does not parse."""
    try:
        text = read_text(file, most=MOST_DOCUMENT_BYTES)
        check_yaml(text)
        nodes = list(yaml.compose_all(text, Loader=SafeLoader))
        documents = list(yaml.load_all(text, Loader=SafeLoader))
    except OSError as error:
        raise InputError([Problem(str(file), None, "", f"cannot be read: {error}")]) from None
    except Exception as error:  # YAML's constructors may raise any exception
        mark = getattr(error, "problem_mark", None)
        message = f"does not parse: {getattr(error, 'problem', None) or error}"
        raise InputError([Problem(str(file), mark.line + 1 if mark else None, "", message)]) from None
    for node, document in zip(nodes, documents, strict=True):
        if document is not None:
            yield node.start_mark.line + 1, document
