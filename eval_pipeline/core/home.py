"""Where things lie: the project's own files and everything a run writes (docs/operations.md)."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Home:
    """Folders of one installation.

    Attributes:
        root: `EVAL_HOME`, everything that runs write.
        data: suites and model versions that belong to the project.
    """

    root: Path
    data: Path

    @property
    def record(self) -> Path:
        return self.root / "record"

    @property
    def journal(self) -> Path:
        return self.root / "journal.sqlite"

    @property
    def store(self) -> Path:
        return self.root / "eval.duckdb"

    @property
    def reports(self) -> Path:
        return self.root / "reports"

    @property
    def dagster(self) -> Path:
        return self.root / "dagster"

    @property
    def predictions(self) -> Path:
        return self.root / "predictions"

    @property
    def databases(self) -> Path:
        return self.root / "databases"

    @property
    def exports(self) -> Path:
        return self.root / "exports"

    @property
    def ui_token(self) -> Path:
        return self.root / "ui.token"

    @property
    def checked(self) -> Path:
        return self.root / "checked"

    @property
    def expected(self) -> Path:
        return self.root / "expected"

    @property
    def judgements(self) -> Path:
        return self.root / "judge.sqlite"

    @property
    def imported_suites(self) -> Path:
        return self.root / "suites"

    @property
    def fingerprints(self) -> Path:
        """Where it is kept what the source looked like: beside its bytecode, or here where nobody may write there."""
        beside = Path(__file__).parents[1] / "__pycache__"
        return (beside if os.access(beside, os.W_OK) else self.root) / "fingerprints"

    @property
    def suite_folders(self) -> tuple[Path, ...]:
        """Folders that hold suites, the project's first."""
        return (self.data / "suites", self.imported_suites)

    @property
    def imported_model_versions(self) -> Path:
        return self.root / "model_versions.yaml"

    @property
    def model_version_files(self) -> tuple[Path, ...]:
        return (self.data / "model_versions.yaml", self.imported_model_versions)


def find_home() -> Home:
    """The home named by `EVAL_HOME` and `EVAL_DATA`, else `.eval/` and `data/` beside the project's `pyproject.toml`.

    An installed package without a project around it takes the working folder for the project.
    """
    checkout = Path(__file__).resolve().parents[2]
    project = checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()
    root = Path(os.environ.get("EVAL_HOME") or project / ".eval")
    data = Path(os.environ.get("EVAL_DATA") or project / "data")
    return Home(root.absolute(), data.absolute())
