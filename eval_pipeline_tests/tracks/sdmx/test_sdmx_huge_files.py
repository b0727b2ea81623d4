"""A structure file of any size is told at once: it is not read whole before it is looked at."""

from pathlib import Path

import pytest

from eval_pipeline.core.errors import InputError
from eval_pipeline.tracks.sdmx.catalogue.messages import SUFFIXES
from eval_pipeline.tracks.sdmx.catalogue.structures import read_data_sets


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"s{suffix}"
    with path.open("wb") as file:
        file.truncate(2 << 30)  # sparse: it takes no room
    with pytest.raises(InputError, match="has 2,147,483,648 bytes; expected at most"):
        read_data_sets([path])
