"""Hosts of a home in a bucket: each has a working folder of its own."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from eval_pipeline.core.home import find_home
from eval_pipeline.core.system.bucket_address import BucketAddress
from eval_pipeline_tests.support import Lab, Said


@dataclass
class Hosts:
    """Switches between hosts."""

    address: BucketAddress
    data: Path
    folder: Path
    patch: pytest.MonkeyPatch

    def use(self, name: str) -> Lab:
        """Returns the lab of a host, whose settings are those of the process from now on."""
        settings = {
            "EVAL_HOME": str(self.address),
            "EVAL_DATA": str(self.data),
            "EVAL_SCRATCH": str(self.folder / name),
        }
        for variable, value in settings.items():
            self.patch.setenv(variable, value)
        home = find_home()
        self.patch.setenv("DAGSTER_HOME", str(home.dagster))
        return Lab(home)

    def run(self, name: str, *arguments: str) -> Said:
        """`eval-pipeline` on a host."""
        return self.use(name).cli(*arguments)
