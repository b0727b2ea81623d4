"""The instance that the UI of a home shows."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from eval_pipeline.defs.assets.partitions import DIMENSION
from eval_pipeline.defs.running.instance import open_instance
from eval_pipeline_tests.support import Lab


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Has Dagster run what these tests run."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("dagster")


@pytest.fixture
def instance(small: Lab) -> Iterator[dg.DagsterInstance]:
    with open_instance(small.home) as found:
        found.add_dynamic_partitions(DIMENSION, ["puppet"])
        yield found
