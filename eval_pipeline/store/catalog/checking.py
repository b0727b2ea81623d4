"""Compares a catalog with its manifests and its parts, for `doctor` and the scrub."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from eval_pipeline.core.errors import StoreError
from eval_pipeline.store.catalog.manifests import Manifests, manifest_files
from eval_pipeline.store.catalog.parts import wrong
from eval_pipeline.store.catalog.publisher import memo_of
from eval_pipeline.store.catalog.views import catalog_hash
from eval_pipeline.store.published.form import catalog_folder
from eval_pipeline.store.published.memo import published_memo
from eval_pipeline.store.schemas import Table


def is_catalog(store: Path) -> bool:
    """Whether the store was published as a catalog."""
    return any(manifest_files(catalog_folder(store) / "manifests"))


def catalog_problems(
    store: Path, track_tables: Sequence[Table], before: Callable[[int], None] = lambda _: None
) -> Iterator[str]:
    """Yields a sentence for each manifest and part that is not as it was published.

    Args:
        store: the catalog.
        track_tables: the tables of the tracks.
        before: called with the size of each part before it is read.
    """
    while True:
        manifests = _texts(store)
        found = list(_problems(store, track_tables, before))
        # A publisher that has replaced manifests meanwhile may also have removed parts that the old ones name.
        if not found or _texts(store) == manifests:
            yield from found
            return


def _problems(store: Path, track_tables: Sequence[Table], before: Callable[[int], None]) -> Iterator[str]:
    folder, schema = catalog_folder(store), catalog_hash(track_tables)
    try:
        state = Manifests.load(folder / "manifests", schema)
    except (StoreError, FileNotFoundError) as error:
        yield str(error)
        return
    memo = published_memo(store)
    if memo is not None and memo != memo_of(state, store, schema):
        yield f"{store} is not the catalog of its manifests: a publisher was interrupted"
    for part in (part for parts in state.parts().values() for part in parts):
        path = part.path(folder / "parts")
        before(path.stat().st_size if path.exists() else 0)
        if problem := wrong(part, folder / "parts"):
            yield problem


def _texts(store: Path) -> dict[Path, bytes]:
    found = {}
    for path in manifest_files(catalog_folder(store) / "manifests"):
        with suppress(FileNotFoundError):
            found[path] = path.read_bytes()
    return found
