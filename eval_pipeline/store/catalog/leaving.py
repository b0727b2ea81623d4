"""Removes what a catalog has left behind when the store is one file again, once nobody reads it any more."""

from contextlib import suppress
from pathlib import Path

from eval_pipeline.store.catalog.manifests import manifest_files
from eval_pipeline.store.catalog.sweeping import part_files, retire, sweep
from eval_pipeline.store.published.form import catalog_folder


def was_catalog(store: Path) -> bool:
    """Whether a catalog was there, parts of which may be left; a folder of that name may also be somebody else's."""
    folder = catalog_folder(store)
    return (folder / "retired").is_dir() or any(manifest_files(folder / "manifests"))


def before_replacing(store: Path) -> None:
    """Keeps the catalog reachable for those who have it open, if the store still is one."""
    folder = catalog_folder(store)
    if any(manifest_files(folder / "manifests")):
        retire(folder / "retired", store, part_files(folder / "parts"))


def after_replacing(store: Path, *, erase: bool) -> None:
    """Removes manifests, parts that nobody reads (with `erase`, all), and folders that become empty."""
    folder = catalog_folder(store)
    for path in manifest_files(folder / "manifests"):
        path.unlink()
    sweep(folder / "parts", folder / "retired", (), erase=erase)
    with suppress(OSError):  # a part is still being read: the next publishing tries again
        for place in [*folder.glob("parts/*"), *folder.glob("*"), folder]:
            place.rmdir()
