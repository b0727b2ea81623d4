"""Makes a suite of StatGPT's test cases (epam/statgpt-backend).

Their targets name many data sets, dimensions and terms that are not in the supplied structures. Those are written next
to the structures as a list of terms marked `from_target`. Structures may be SDMX messages, lists of terms in the
suite's CSV form, and the two lists of the World Economic Outlook: indicators (`id, title, …`) and countries (`ISO, WEO,
Name`).
"""

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from io import StringIO
from itertools import islice
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.core.reading.csv_files import open_csv
from eval_pipeline.tracks.importing import add_import_notes, add_import_options, add_origin
from eval_pipeline_plugins.data_sets.sdmx.statgpt_cases import ForeignCase, ForeignTerm, read_cases
from eval_pipeline_plugins.foreign_entries import read_text
from eval_pipeline_plugins.tracks.sdmx.catalogue.catalogue import Catalogue
from eval_pipeline_plugins.tracks.sdmx.catalogue.source import FOLDER, catalogue_of
from eval_pipeline_plugins.tracks.sdmx.catalogue.term_lists import SUFFIX, ListedTerm, write_terms

WEO = "IMF.RES:WEO"
FROM_TARGETS = "from_targets.csv"
_WEO_NAME = "World Economic Outlook"
_WEO_FORMS = (("INDICATOR", "id", "title"), ("COUNTRY", "ISO", "Name"))
"""Which dimension the two lists of the World Economic Outlook fill, and their columns of ids and names."""


def read_statgpt(
    source: Path, limit: int | None, structures: Sequence[Path], folder: Path
) -> Iterator[dict[str, Json]]:
    """Yields the cases in the suite's file format, in file order, and copies their structures to the suite's folder.

    A case without an id gets one that is derived from its name, with a number if several cases share the name. Only the
    messages of the user are kept.

    Raises:
        InputError: the cases are wrong (the message names file, line and field) or the structures cannot be read.
    """
    everything, indicators = read_cases(source)
    cases = list(islice(everything, limit))
    place = folder / FOLDER
    place.mkdir()
    for path in structures:
        add_origin(folder, _put(path, place), path)
    known = catalogue_of(sorted(place.iterdir()), "--structures") if structures else Catalogue({})
    aliases = _aliases([entry.dataset_id for case in cases for entry in case.targets], known)
    missing = [
        ListedTerm(data_set, found.dimension_name, term.id, term.name, from_target="true")
        for case in cases
        for entry in case.targets
        for found in entry.dimensions
        for term in found.values
        if not _is_known(
            known, (data_set := aliases.get(entry.dataset_id, entry.dataset_id)), found.dimension_name, term
        )
    ]
    if missing:
        write_terms(place / FROM_TARGETS, dict.fromkeys(missing))
    options: dict[str, Json] = {"aliases": aliases} if aliases else {}
    add_import_options(folder, options | ({"indicator_dimensions": ["INDICATOR", *indicators]} if indicators else {}))
    taken = [f"targets name {asked}, taken as {meant}" for asked, meant in aliases.items() if asked != meant]
    add_import_notes(folder, [*(remark.removeprefix(f"{place}/") for remark in known.remarks), *taken])
    names: Counter[str] = Counter()
    for case in cases:
        raw = _raw_case(case)
        if not case.id:
            names[raw["name"]] += 1
            raw["id"] = _made_id(raw["name"], names[raw["name"]])
        yield raw


def _aliases(asked: Sequence[str], known: Catalogue) -> dict[str, str]:
    """Returns the data set for each id of the targets that does not itself become one.

    An id whose version the structures lack means the version that they have. Of ids that the structures lack
    altogether, those with a version mean the one without, if there is one.
    """
    ids = dict.fromkeys(asked)
    found = {}
    for id in ids:
        base = id.partition("(")[0]
        meant = next((known.meant(name) for name in (id, base) if known.meant(name) in known.data_sets), None)
        if meant is None and base in ids:
            meant = base
        if meant is not None and meant != id:
            found[id] = meant
    return found


def _is_known(known: Catalogue, data_set: str, dimension: str, term: ForeignTerm) -> bool:
    return any(term.name == other.name for other in known.find(data_set, dimension, term.id))


def _put(path: Path, place: Path) -> Path:
    """Copies a structure file; lists of the World Economic Outlook are converted to lists of terms."""
    if path.is_dir():
        raise InputError([Problem(str(path), None, "", "is a folder; expected the files in it, each by its name")])
    target = place / path.name
    if target.exists():
        raise InputError([Problem(str(path), None, "", "another structure file has the same name")])
    listed = list(_weo_terms(path)) if path.suffix.lower() == SUFFIX else []
    if listed:
        write_terms(target, listed)
    else:
        shutil.copyfile(path, target)
    return target


def _weo_terms(path: Path) -> Iterator[ListedTerm]:
    found = open_csv(StringIO(read_text(path), newline=""), str(path))
    dimension, id, name = next((form for form in _WEO_FORMS if {*form[1:]} <= {*found.columns}), ("", "", ""))
    for row, named in found.named() if dimension else ():
        lacking = [column for column in (id, name) if not named[column]]
        if lacking:
            raise InputError(Problem(str(path), row.line, column, "must not be empty") for column in lacking)
        yield ListedTerm(WEO, dimension, named[id] or "", named[name] or "", _WEO_NAME, named.get("description") or "")


def _made_id(name: str, number: int) -> str:
    return str(uuid5(NAMESPACE_URL, f"statgpt/{name}" if number == 1 else f"statgpt/{name}#{number}"))


def _raw_case(case: ForeignCase) -> dict[str, Json]:
    name = case.name or case.id or case.conversation[0].content[:60]
    raw: dict[str, Json] = {
        "id": case.id,
        "name": name,
        "tags": case.tags,
        "comments": case.comments or "",
        "source": case.source,
        "rejected_datasets": case.rejected,
    }
    asked = [turn for turn in case.conversation if turn.role == "user"]
    turns = [turn.model_dump(exclude_none=True, exclude_defaults=True) for turn in asked]
    return raw | {"conversation": turns}
