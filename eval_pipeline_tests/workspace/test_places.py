"""Places of turns and samples as texts."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.workspace.asked import places
from eval_pipeline.workspace.asked.places import all_differ


@given(st.lists(st.sampled_from([f"suite/{name}#0 0" for name in "abcdefgh"]), max_size=8), st.integers(1, 4))
def test_a_place_that_is_there_twice_is_found(found: list[str], at_once: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(places, "_AT_ONCE", at_once)
        assert all_differ(pa.array(found, pa.string())) is (len(set(found)) == len(found))
