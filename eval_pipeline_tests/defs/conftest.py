"""The instance that the UI of a home shows."""

from collections.abc import Iterator

import dagster as dg
import pytest

from eval_pipeline.defs.assets.partitions import DIMENSION
from eval_pipeline.defs.running.instance import open_instance
from eval_pipeline_tests.support import Lab


@pytest.fixture
def instance(small: Lab) -> Iterator[dg.DagsterInstance]:
    with open_instance(small.home) as found:
        found.add_dynamic_partitions(DIMENSION, ["puppet"])
        yield found
