"""The parts of a prompt: instructions, data sets, the conversation so far, the candidates and the request."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from eval_pipeline.core.model import Json, Message
from eval_pipeline.tracks.texts.prompt_parts import EXAMPLES, PromptParts

if TYPE_CHECKING:
    from eval_pipeline_plugins.tracks.sdmx.case_file import SdmxCase, SdmxContext, SdmxTurn
    from eval_pipeline_plugins.tracks.sdmx.catalogue.catalogue import DataSet, Term
    from eval_pipeline_plugins.tracks.sdmx.search.retrieval import Candidates, Retriever

_NO_ANSWER = "(no answer)"
_DESCRIPTION = 300

_TASK = """\
You find statistical data. People ask in their own words; you say which terms of which data sets answer the request. \
The data sets and their dimensions are listed first. A dimension with few terms is listed whole, as `id = name`; of \
the others you are shown candidates for the request, the best ones first; the last ones may have nothing to do with it.

Select, for each data set that answers the request, the terms of each dimension that the request settles, and no \
others. Leave out data sets that do not answer it, and dimensions that it says nothing about. Of a group of countries \
select each member; the group itself only where it is a candidate and the request means it as a whole. If nothing \
fits, select nothing: an empty list. Copy ids and names exactly as they are shown; never make one up.

Answer with one JSON object and nothing else:
{"indicator_selection": [{"dataset_id": "AGENCY:DATA_SET", "dimensions": [{"dimension_name": "COUNTRY", "values": \
[{"id": "MEX", "name": "Mexico"}]}]}]}"""

_TERM: Json = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "name": {"type": "string"}},
    "required": ["id", "name"],
    "additionalProperties": False,
}
_DIMENSION: Json = {
    "type": "object",
    "properties": {"dimension_name": {"type": "string"}, "values": {"type": "array", "items": _TERM}},
    "required": ["dimension_name", "values"],
    "additionalProperties": False,
}
_DATA_SET: Json = {
    "type": "object",
    "properties": {"dataset_id": {"type": "string"}, "dimensions": {"type": "array", "items": _DIMENSION}},
    "required": ["dataset_id", "dimensions"],
    "additionalProperties": False,
}
_SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {"indicator_selection": {"type": "array", "items": _DATA_SET}},
    "required": ["indicator_selection"],
    "additionalProperties": False,
}


_TEMPLATE = (
    Message("system", "{{ system }}"),
    Message("user", "{{ data_sets }}"),
    EXAMPLES,
    "history",
    Message("user", "{{ candidates }}\n\nRequest: {{ question }}"),
)


def prompt_parts(case: "SdmxCase", turn: "SdmxTurn", history: Sequence[str], version: str) -> PromptParts:
    """Returns the parts of a turn's prompt.

    The instructions and the list of data sets are normally the same for every turn of the suite. If the suite has more
    data sets than one prompt shows, the list depends on the request and comes with the candidates.

    Raises:
        KeyError: the version is not in `prompt_versions`.
    """
    context: SdmxContext = case.context  # the type leads fingerprints to the search
    found = context.candidates(turn)
    whole = len(found.data_sets) == len(context.catalogue.data_sets)
    listed = _overview_text(context.retriever, found.data_sets)
    candidates = [] if whole else [listed]
    candidates += filter(None, [_candidates_text(context.retriever, found)])
    earlier = zip(case.turns[: turn.index], history, strict=True)
    said = (
        (Message("user", before.question), Message("assistant", answer or _NO_ANSWER)) for before, answer in earlier
    )
    texts = {
        "system": {"selection-2": _TASK}[version],
        "data_sets": listed if whole else "",
        "candidates": "\n\n".join(candidates),
        "question": turn.question,
    }
    messages = {"history": [message for pair in said for message in pair]}
    return PromptParts(_TEMPLATE, texts, messages, frozenset({"system", "data_sets"}), answer_schema=_SCHEMA)


def _overview_text(retriever: "Retriever", data_sets: Sequence[str]) -> str:
    found = (retriever.catalogue.data_sets[id] for id in data_sets)
    return "\n\n".join(["Data sets", *("\n".join(_data_set_lines(data_set, retriever.most)) for data_set in found)])


def _data_set_lines(data_set: "DataSet", most: int) -> Iterator[str]:
    description = data_set.description
    if len(description) > _DESCRIPTION:
        description = description[:_DESCRIPTION].rsplit(" ", 1)[0] + " …"
    yield f"{data_set.id}: {data_set.name}" + (f". {description}" if description else "")
    for dimension in data_set.dimensions.values():
        terms = dimension.codes.terms
        listed = _listed(terms) if len(terms) <= most else f"{len(terms):,} terms, candidates with the request"
        yield f"- {dimension.id} ({dimension.name}): {listed}"


def _candidates_text(retriever: "Retriever", found: "Candidates") -> str:
    """Returns the candidates of the large dimensions; data sets that share a code list share a line."""
    places: dict[tuple[str, tuple[Term, ...]], list[str]] = {}
    for (data_set, dimension), terms in found.places.items():
        codes = retriever.catalogue.data_sets[data_set].dimensions[dimension].codes
        if len(codes.terms) > retriever.most:
            places.setdefault((codes.id, terms), []).append(f"{data_set} {dimension}")
    lines = [f"- {', '.join(names)}: {_listed(terms)}" for (_, terms), names in places.items()]
    return "\n".join(["Candidates", *lines]) if lines else ""


def _listed(terms: "Sequence[Term]") -> str:
    return "; ".join(f"{term.id} = {term.name}" for term in terms) or "none"
