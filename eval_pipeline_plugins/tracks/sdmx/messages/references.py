"""References between artefacts of structure messages, and the error of a message that is wrong."""

Reference = tuple[str, str, str]
"""Agency, id and version of an artefact; the version is empty where a reference gives none."""
ItemReference = tuple[Reference, str]
"""An artefact and the id of one of its items; the item is empty where the artefact itself is meant."""

DEFAULT_VERSION = "1.0"
"""The version that the standards give to an artefact, or to a reference to one, that states none."""


class MessageError(ValueError):
    """A part of a structure message is wrong; the sentence says which part and what was expected.

    Attributes:
        lineno: the line, where the reader knows it.
    """

    def __init__(self, sentence: str, lineno: int | None = None) -> None:
        super().__init__(sentence)
        self.lineno = lineno


def shown(place: Reference | None) -> str:
    """Returns a reference as people write it, `AGENCY:ID(VERSION)`."""
    if place is None:
        return "that it does not name"
    return f"{place[0]}:{place[1]}({place[2]})" if place[2] else f"{place[0]}:{place[1]}"


def urn_target(urn: str) -> ItemReference | None:
    """Parses a URN: `…Codelist=IMF:CL_FREQ(1.0.3)`, `…Concept=IMF:CS(1.0).FREQ`; None if the text is not a URN."""
    agency, colon, rest = urn.strip().rpartition("=")[2].partition(":")
    id, bracket, rest = rest.partition("(")
    version, _, item = rest.partition(")")
    return ((agency, id, version), item.removeprefix(".")) if colon and bracket else None
