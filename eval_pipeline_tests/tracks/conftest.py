"""What the tests of all tracks share."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def foreign_files_are_read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a process of its own reads them first, which takes longer; see `core/test_arms_length.py`."""

    def call(work: Callable[..., Any], arguments: Sequence[Any], below: Sequence[Any], *_: Any) -> Any:
        return json.loads(json.dumps(work(*arguments)))

    for module in ("imports.importing", "recorded.logs"):
        monkeypatch.setattr(f"eval_pipeline.operations.{module}.at_arms_length", call)
    monkeypatch.setattr("eval_pipeline.suites.cases.rehearse", lambda source: None)
