"""Reads StatGPT's test cases (epam/statgpt-backend): YAML documents that are close to the suite's own form.

Their targets name many data sets, dimensions and terms that are not in the supplied structures. Those are written next
to the structures as a list of terms marked `from_target`. Structures may be SDMX messages, lists of terms in the
suite's CSV form, and the two lists of the World Economic Outlook: indicators (`id, title, …`) and countries (`ISO, WEO,
Name`).
"""

import csv
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated
from uuid import NAMESPACE_URL, uuid5

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from eval_pipeline.core.complaints import complaints, dotted
from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.foreign import MOST_DOCUMENT_BYTES, SafeLoader, check_yaml, read_text
from eval_pipeline.core.model import Json
from eval_pipeline.tracks.sdmx.catalogue.catalogue import Catalogue
from eval_pipeline.tracks.sdmx.catalogue.source import FOLDER, catalogue_of
from eval_pipeline.tracks.sdmx.catalogue.term_lists import SUFFIX, ListedTerm, write_terms

WEO = "IMF.RES:WEO"
FROM_TARGETS = "from_targets.csv"
_WEO_NAME = "World Economic Outlook"
_FOREIGN = ConfigDict(extra="ignore")
_Text = Annotated[str, Field(min_length=1)]


class _Term(BaseModel):
    model_config = _FOREIGN
    id: _Text
    name: _Text


class _Dimension(BaseModel):
    model_config = _FOREIGN
    dimension_name: _Text
    values: list[_Term]


class _DataSet(BaseModel):
    model_config = _FOREIGN
    dataset_id: _Text
    dimensions: list[_Dimension]
    indicator_rank_in_search: int | None = None


class _Target(BaseModel):
    model_config = _FOREIGN
    indicator_selection: list[_DataSet] = []


class _Turn(BaseModel):
    model_config = _FOREIGN
    role: str
    content: _Text
    target: _Target = _Target()


class _Case(BaseModel):
    model_config = _FOREIGN
    id: str = ""
    name: str = ""
    tags: list[str] = []
    comments: str | None = ""
    source: str = ""
    rejected_datasets: list[str] = []
    conversation: list[_Turn] = Field(min_length=1)

    @field_validator("conversation")
    @classmethod
    def _asked(cls, turns: list[_Turn]) -> list[_Turn]:
        if not any(turn.role == "user" for turn in turns):
            raise ValueError("expected a turn of role 'user'")
        return turns


def read_statgpt(
    source: Path, limit: int | None, structures: Sequence[Path], folder: Path
) -> Iterator[dict[str, Json]]:
    """Yields the cases in the suite's file format, in file order, and copies their structures to the suite's folder.

    A case without an id gets one that is derived from its name, with a number if several cases share the name. Only the
    messages of the user are kept.

    Raises:
        InputError: the cases are wrong (the message names file, line and field) or the structures cannot be read.
    """
    cases = list(islice(_cases(source), limit))
    place = folder / FOLDER
    place.mkdir()
    for path in structures:
        _put(path, place)
    known = catalogue_of(sorted(place.iterdir()), str(place)) if structures else Catalogue({})
    missing = [
        ListedTerm(known.meant(entry.dataset_id), found.dimension_name, term.id, term.name, from_target="true")
        for case in cases
        for turn in case.conversation
        for entry in turn.target.indicator_selection
        for found in entry.dimensions
        for term in found.values
        if not _is_known(known, entry.dataset_id, found.dimension_name, term)
    ]
    if missing:
        write_terms(place / FROM_TARGETS, dict.fromkeys(missing))
    names: Counter[str] = Counter()
    for case in cases:
        raw = _raw_case(case)
        if not case.id:
            names[raw["name"]] += 1
            raw["id"] = _made_id(raw["name"], names[raw["name"]])
        yield raw


def _is_known(known: Catalogue, data_set: str, dimension: str, term: _Term) -> bool:
    held = known.find(known.meant(data_set), dimension, term.id)
    return any(term.name == other.name for other in held)


def _put(path: Path, place: Path) -> None:
    """Copies a structure file; lists of the World Economic Outlook are converted to lists of terms."""
    target = place / path.name
    if target.exists():
        raise InputError([Problem(str(path), None, "", "another structure file has the same name")])
    listed = list(_weo_terms(path)) if path.suffix.lower() == SUFFIX else []
    if listed:
        write_terms(target, listed)
    else:
        shutil.copyfile(path, target)


def _weo_terms(path: Path) -> Iterator[ListedTerm]:
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        reader = csv.DictReader(file)
        columns = set(reader.fieldnames or ())
        if {"id", "title"} <= columns:
            for row in reader:
                yield ListedTerm(WEO, "INDICATOR", row["id"], row["title"], _WEO_NAME, row.get("description") or "")
        elif {"ISO", "Name"} <= columns:
            for row in reader:
                yield ListedTerm(WEO, "COUNTRY", row["ISO"], row["Name"], _WEO_NAME)


def _cases(source: Path) -> Iterator[_Case]:
    """Yields the documents of the file. Raises an InputError that lists every problem in it."""
    problems: list[Problem] = []
    cases: list[_Case] = []
    try:
        text = read_text(source, most=MOST_DOCUMENT_BYTES)
        check_yaml(text)
        nodes = list(yaml.compose_all(text, Loader=SafeLoader))
        documents = list(yaml.load_all(text, Loader=SafeLoader))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError([Problem(str(source), None, "", f"cannot be read: {error}")]) from None
    except Exception as error:  # YAML's constructors may raise any exception
        mark = getattr(error, "problem_mark", None)
        message = f"does not parse: {getattr(error, 'problem', None) or error}"
        raise InputError([Problem(str(source), mark.line + 1 if mark else None, "", message)]) from None
    for node, document in zip(nodes, documents, strict=True):
        if document is None:
            continue
        line = node.start_mark.line + 1
        try:
            cases.append(_Case.model_validate(document))
        except ValidationError as error:
            problems += [
                Problem(str(source), line, dotted(location), message) for location, message in complaints(error, _Case)
            ]
    if problems:
        raise InputError(problems)
    if not cases:
        raise InputError([Problem(str(source), 1, "", "expected YAML documents with 'conversation', found none")])
    return iter(cases)


def _made_id(name: str, number: int) -> str:
    return str(uuid5(NAMESPACE_URL, f"statgpt/{name}" if number == 1 else f"statgpt/{name}#{number}"))


def _raw_case(case: _Case) -> dict[str, Json]:
    name = case.name or case.id or case.conversation[0].content[:60]
    raw: dict[str, Json] = {
        "id": case.id,
        "name": name,
        "tags": case.tags,
        "comments": case.comments or "",
        "source": case.source,
        "rejected_datasets": case.rejected_datasets,
    }
    turns = [turn for turn in case.conversation if turn.role == "user"]
    return raw | {"conversation": [turn.model_dump(exclude_none=True) for turn in turns]}
