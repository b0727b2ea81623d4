from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import distribution, distributions
from pathlib import Path

import pytest

from eval_pipeline.core.installed import plugins
from eval_pipeline_tests.plugins.installing import forget, install

Install = Callable[[str, str, Mapping[str, Mapping[str, str]]], None]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a package of one module while the test lasts: (name, code, entry points by group).

    No other package but ours adds anything meanwhile, whatever is installed here.
    """
    site = str(tmp_path / "site")
    monkeypatch.syspath_prepend(site)
    ours = distribution("eval-pipeline")
    monkeypatch.setattr(plugins, "distributions", lambda: [ours, *distributions(path=[site])])

    def into_this_process(name: str, code: str, points: Mapping[str, Mapping[str, str]]) -> None:
        install(tmp_path / "site", name, code, points)
        forget()

    yield into_this_process
    monkeypatch.undo()
    forget()
