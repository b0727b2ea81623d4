"""Locations of the project's own files and of everything that runs write (docs/operations.md)."""

import os
from dataclasses import dataclass
from pathlib import Path

from eval_pipeline.core.system.bucket_address import HOME, BucketAddress, bucket_address, working_folder

MODEL_VERSIONS = Path("data", "model_versions.yaml")
"""The file by which a project's folder is known."""


@dataclass(frozen=True, slots=True)
class Home:
    """Folders and files of one installation.

    Attributes:
        root: `EVAL_HOME`, the folder for everything that runs write; of a home in a bucket, this host's working folder.
        data: folder of the suites and model versions that belong to the project.
        bucket: where record, store and reports of a home in a bucket are; None if they are in `root`.
    """

    root: Path
    data: Path
    bucket: BucketAddress | None = None

    @property
    def place(self) -> str:
        """Address of record, store and reports: the bucket or the folder."""
        return str(self.bucket or self.root)

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
    def commands(self) -> Path:
        return self.root / "commands"

    @property
    def running(self) -> Path:
        """What is known of runs in progress on this host, and who wishes that they end."""
        return self.root / "running"

    @property
    def reports(self) -> Path:
        return self.root / "reports"

    @property
    def parts(self) -> Path:
        """What workers of a cluster have computed of stages that are not finished yet."""
        return self.root / "parts"

    @property
    def dagster(self) -> Path:
        return self.root / "dagster"

    @property
    def imported(self) -> Path:
        """What `import` makes; of a home in a bucket, copies of what all its hosts share."""
        return self.root if self.bucket is None else self.root / "imported"

    @property
    def predictions(self) -> Path:
        return self.imported / "predictions"

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
    def packages(self) -> Path:
        return self.root / "packages"

    @property
    def judgements(self) -> Path:
        return self.root / "judge.sqlite"

    @property
    def imported_suites(self) -> Path:
        return self.imported / "suites"

    @property
    def fingerprints(self) -> Path:
        """Cache file of source fingerprints.

        It is beside the package's bytecode, or in the home if that folder is read-only.
        """
        beside = Path(__file__).parents[1] / "__pycache__"
        return (beside if os.access(beside, os.W_OK) else self.root) / "fingerprints"

    @property
    def suite_folders(self) -> tuple[Path, ...]:
        """Folders that contain suites; the project's own comes first."""
        return (self.data / "suites", self.imported_suites)

    @property
    def imported_model_versions(self) -> Path:
        return self.imported / "model_versions.yaml"

    @property
    def model_version_files(self) -> tuple[Path, ...]:
        return (self.data / "model_versions.yaml", self.imported_model_versions)

    @property
    def model_version_places(self) -> str:
        """Names the files with model versions, for use in messages: "a or b"."""
        return " or ".join(map(str, self.model_version_files))


def find_home() -> Home:
    """The home named by `EVAL_HOME` and `EVAL_DATA`, else `.eval/` and `data/` of the project.

    Raises:
        UsageError: `EVAL_HOME` names a bucket, and is malformed or lacks what it needs.
    """
    project, named = _project(), os.environ.get(HOME, "")
    bucket = bucket_address(named)
    root = Path(named or project / ".eval") if bucket is None else working_folder(bucket)
    data = Path(os.environ.get("EVAL_DATA") or project / "data")
    return Home(root.absolute(), data.absolute(), bucket)


def _project() -> Path:
    """The project's folder.

    That is the nearest folder with a `data/model_versions.yaml`, from the working folder upwards; else the clone that
    the package is imported from; else the working folder.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / MODEL_VERSIONS).is_file():
            return folder
    clone = Path(__file__).resolve().parents[2]
    return clone if (clone / "pyproject.toml").is_file() else here
