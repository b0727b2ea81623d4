"""The shop as the cases of a module share it."""

from collections.abc import Iterator

import pytest

from eval_pipeline_plugins.tracks.sql.cases.source import SharedDatabases
from eval_pipeline_tests.tracks.sql.helpers import shared


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedDatabases]:
    """Read once: every query runs on a database that it cannot change."""
    folder = tmp_path_factory.mktemp("shop")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVAL_HOME", str(folder / "home"))
        yield shared(folder)
