"""Installs the further packages that a suite's code may import in the sandbox."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from eval_pipeline.core.errors import UsageError
from eval_pipeline.sandbox.layers import install, read_layer
from eval_pipeline.workspace.workspace import Workspace

OPTION = "packages"


def install_packages(workspace: Workspace, suite: str, wheels: Sequence[Path] = ()) -> Iterator[str]:
    """Yields a line about the packages of a suite, which are installed afterwards.

    Raises:
        UsageError: a folder of wheels does not exist.
        InputError: the suite's header or its list of packages is wrong.
        EvalError: they cannot be installed.
    """
    for folder in wheels:
        if not folder.is_dir():
            raise UsageError(f"no folder {folder}")
    source = workspace.suites[suite]
    named = source.require().options.get(OPTION)
    if not isinstance(named, str):
        yield f"{suite}: lists no packages"
        return
    layer = read_layer(source.folder / named, workspace.home.packages)
    before = layer.installed
    install(layer, wheels)
    names = ", ".join(one.partition(" ")[0] for one in layer.requirements)
    yield f"{suite}: {names} {'were installed before' if before else 'installed'} ({layer.folder})"
