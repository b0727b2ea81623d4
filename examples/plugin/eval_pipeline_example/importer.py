"""An importer: lines such as `12 + 30` become questions of the track finqa."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model import Json
from eval_pipeline.tracks.registry import ForeignForm


def read_sums(source: Path, limit: int | None) -> Iterator[dict[str, Json]]:
    """A case a line."""
    for number, line in enumerate(islice(source.read_text("utf-8").splitlines(), limit), start=1):
        try:
            first, second = (float(part) for part in line.split("+"))
        except ValueError as error:
            raise InputError([Problem(str(source), number, "", f"expected `a + b`, found '{line}'")]) from error
        document = {"pre_text": f"{first:g} and {second:g}", "table": [["", ""]], "post_text": ""}
        turn = {"question": f"{line}?", "program": f"add({first:g}, {second:g})", "answer": first + second}
        yield {"id": f"line_{number}", "document": document, "turns": [turn]}


SUMS = ForeignForm("finqa", "eval_pipeline_example.importer:read_sums")
