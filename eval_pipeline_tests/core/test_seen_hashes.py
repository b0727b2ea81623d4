"""A set of hashes in little memory says the same as Python's own."""

from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.seen_hashes import SeenHashes

# Few different bytes, so that hashes with equal beginnings meet and look alike across their borders.
HASHES = st.lists(
    st.text("01", min_size=6, max_size=6).map(lambda bits: "".join(f"0{bit}" for bit in bits)), max_size=80
)


@given(HASHES)
def test_each_hash_is_new_once(hashes: list[str]) -> None:
    seen, known = SeenHashes(), set[str]()
    for found in hashes:
        assert seen.add(found) is (found not in known)
        known.add(found)
