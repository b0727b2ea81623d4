from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import distributions
from pathlib import Path

import pytest

from eval_pipeline.core.installed import plugins
from eval_pipeline.workspace.tabled import track_tables
from eval_pipeline_tests.plugins.installing import install

Install = Callable[[str, str, Mapping[str, Mapping[str, str]]], None]


def _forget() -> None:
    for known in (plugins.installed, plugins._loaded, plugins._warn, track_tables._kept):
        known.cache_clear()


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a package of one module while the test lasts: (name, code, entry points by group).

    No other package adds anything meanwhile, whatever is installed here.
    """
    site = str(tmp_path / "site")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr(plugins, "distributions", lambda: distributions(path=[site]))

    def into_this_process(name: str, code: str, points: Mapping[str, Mapping[str, str]]) -> None:
        install(tmp_path / "site", name, code, points)
        _forget()

    yield into_this_process
    monkeypatch.undo()
    _forget()
