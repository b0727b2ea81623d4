"""Parses a response into a selection."""

from collections.abc import Iterator

from pydantic_core import from_json

from eval_pipeline.answers.json_text import find_json
from eval_pipeline.core.model import ErrorClass, Json
from eval_pipeline.tracks.base import ArtefactError
from eval_pipeline_plugins.tracks.sdmx.responses.selection import Pair, Place, Selection, merged
from eval_pipeline_plugins.tracks.sdmx.responses.statgpt_answers import is_artefact, last_selection

FORM = '{"indicator_selection": [{"dataset_id": "...", "dimensions": [{"dimension_name": "...", "values": [...]}]}]}'
KEY = "indicator_selection"
_NOTHING = "is_out_of_scope"
MAX_TERMS = 20_000
_MAX_CHARS = 3_000_000


def parse_selection(text: str) -> Selection:
    """Finds the selection in a response: JSON alone, in a fence, or surrounded by prose; or its list or entry, alone.

    As in a target, `is_out_of_scope` alone says that nothing is selected.

    An artefact of StatGPT is read, too; see `statgpt_answers`.

    A term without a name, or given by its id only, gets its name from the catalogue when it is executed.

    Raises:
        ArtefactError: with its error class.
    """
    found = _whole(text)
    if found is None:
        found = find_json(text, _is_selection, "a selection", FORM, _MAX_CHARS)[KEY]
    selection = merged(_entries(found))
    if selection.terms > MAX_TERMS:
        raise _invalid(f"the selection has {selection.terms} terms, at most {MAX_TERMS} are read")
    return selection


def _is_selection(value: Json) -> bool:
    return isinstance(value, dict) and KEY in value


def _is_entry(value: Json) -> bool:
    return isinstance(value, dict) and "dataset_id" in value and KEY not in value


def _whole(text: str) -> Json:
    """Returns the list of a selection if the text, or its one fence, is nothing but it, an entry or an artefact.

    Other texts give None. The bare list is the form of the columns `selection` and `target`. Lists and entries inside
    a longer text are not accepted, since they may be parts of broken answers.
    """
    if len(text) <= _MAX_CHARS and (bare := text.strip()).startswith("```") and bare.endswith("```"):
        text = bare[3:-3].removeprefix("json")
    if text.lstrip()[:1] not in {"[", "{"} or len(text) > _MAX_CHARS:
        return None
    try:
        found = from_json(text)
    except ValueError:
        return None
    if isinstance(found, dict) and KEY not in found and is_artefact(found):
        try:
            return last_selection(found)[KEY]
        except ValueError as error:
            raise _invalid(str(error)) from None
    if _is_entry(found):
        return [found]
    if isinstance(found, dict) and KEY not in found and found.get(_NOTHING) is True:
        return []
    return found if isinstance(found, list) and all(map(_is_entry, found)) else None


def _entries(value: Json) -> Iterator[tuple[Place, list[Pair]]]:
    for index, entry in enumerate(_items([] if value is None else value, f"'{KEY}'")):
        at = f"entry {index} of '{KEY}'"
        data_set = _text(entry, "dataset_id", at)
        dimensions = entry.get("dimensions")
        if isinstance(dimensions, dict):
            dimensions = [{"dimension_name": name, "values": values} for name, values in dimensions.items()]
        for found in _items(dimensions, f"'dimensions' of {at}"):
            at_dimension = f"a dimension of {at}"
            dimension = _text(found, "dimension_name", at_dimension)
            values = _items(found.get("values"), f"'values' of dimension '{dimension:.80}' of {at}", plain=True)
            yield (data_set, dimension), [_term(term, dimension) for term in values]


def _items(value: Json, what: str, *, plain: bool = False) -> list[Json]:
    """Checks that a value is a list of objects or, with `plain`, of objects and ids."""
    if not isinstance(value, list):
        raise _invalid(f"{what} must be a list")
    if not plain and not all(isinstance(item, dict) for item in value):
        raise _invalid(f"{what} must hold objects")
    return value


def _text(entry: dict[str, Json], name: str, at: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str) or not value:
        raise _invalid(f"{at} needs '{name}', a text")
    return value


def _term(value: Json, dimension: str) -> Pair:
    if isinstance(value, dict):
        id, name = value.get("id"), value.get("name")
        if name is None or isinstance(name, str):
            return _id(id, dimension), name or ""
        raise _invalid(f"the 'name' of a value of dimension '{dimension:.80}' must be a text")
    return _id(value, dimension), ""


def _id(value: Json, dimension: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise _invalid(f"a value of dimension '{dimension:.80}' needs 'id', a text")
    return str(value)


def _invalid(message: str) -> ArtefactError:
    return ArtefactError(ErrorClass.VALUE, message)
