"""The hash of values that come in any order is that of the sorted list."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.ids import json_hash
from eval_pipeline.suites import editions
from eval_pipeline.suites.editions import SortedHash

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
VALUES = st.dictionaries(NAMES, st.lists(st.integers() | NAMES, max_size=3), max_size=8)


@given(VALUES, st.sampled_from([(), ("further",)]), st.sampled_from([1, 3, 100]))
def test_it_is_the_hash_of_the_sorted_list(
    values: dict[str, list[int | str]], further: tuple[str, ...], some: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(editions, "_IN_MEMORY", some)  # most texts are in the file
        patch.setattr(editions, "_AT_ONCE", some)
        found = SortedHash()
        for name, value in values.items():
            found.add(name, value)
        listed = [values[name] for name in sorted(values)]
        assert found.hash(*further) == json_hash([listed, *further] if further else listed)
