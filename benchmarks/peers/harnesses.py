"""The peers: how each is installed apart, and run on a file of samples."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Peer:
    """Another harness.

    Attributes:
        package: as its registry names it, pinned.
        stores: what a run leaves behind.
        script: beside this module; run as `python SCRIPT SAMPLES FOLDER SCORERS STORING`, prints the number of right
            samples last. Empty for promptfoo, which Node runs.
        scorers: how many it has, each of which compares answer and expectation.
        storing: whether a harness that stores nothing by itself is told to; empty if not.
    """

    package: str
    stores: str
    script: str = ""
    scorers: int = 1
    storing: str = ""

    @property
    def name(self) -> str:
        return self.package.partition("==")[0].partition("@")[0]

    @property
    def _set(self) -> tuple[str, str]:
        return str(self.scorers), self.storing

    def install(self, place: Path) -> None:
        """Into a folder of its own below `place`, unless it is there."""
        folder = place / self.package.replace("@", "==")
        if (folder / "installed").exists():
            return
        folder.mkdir(parents=True, exist_ok=True)
        if self.script:
            uv = str(Path(sys.executable).with_name("uv"))  # where `make setup` puts it
            subprocess.run([uv, "venv", "--quiet", "--clear", "--python", "3.11", folder / "venv"], check=True)
            subprocess.run(
                [
                    uv,
                    "pip",
                    "install",
                    "--quiet",
                    "--compile-bytecode",
                    "--python",
                    folder / "venv/bin/python",
                    self.package,
                ],
                check=True,
            )
        else:
            npm = ["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", folder, self.package]
            subprocess.run(npm, check=True)
        (folder / "installed").touch()

    def command(self, place: Path, samples: Path, folder: Path) -> list[str]:
        """What evaluates the samples, with `folder` for what it writes."""
        installed = place / self.package.replace("@", "==")
        if self.script:
            return [str(installed / "venv/bin/python"), str(HERE / self.script), str(samples), str(folder), *self._set]
        config = folder / "promptfooconfig.json"
        config.write_text(json.dumps(_promptfoo_config(samples)))
        program = installed / "node_modules/promptfoo/dist/src/entrypoint.js"
        options = ["--no-cache", "--no-table", "--no-progress-bar", "-j", "64", "-o", str(folder / "out.json")]
        return ["node", str(program), "eval", "-c", str(config), *options]

    def right(self, output: str, folder: Path) -> int:
        """How many samples it found right."""
        if self.script:
            return int(output.split()[-1])
        return int(json.loads((folder / "out.json").read_text())["results"]["stats"]["successes"])

    def environment(self, folder: Path) -> dict[str, str]:
        """No telemetry, and a home of its own."""
        return os.environ | {
            "HOME": str(folder),
            "PROMPTFOO_CONFIG_DIR": str(folder),
            "PROMPTFOO_DISABLE_TELEMETRY": "1",
            "PROMPTFOO_DISABLE_UPDATE": "1",
            "PROMPTFOO_DISABLE_DEBUG_LOG": "1",  # with thousands of samples its log is written after it was closed
            "PROMPTFOO_DISABLE_ERROR_LOG": "1",
            "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
            "HF_HUB_OFFLINE": "1",
        }


PEERS = (
    *(
        Peer("pydantic-evals==2.62.0", stores, "pydantic_evals_peer.py", scorers, storing)
        for scorers in (1, 20)
        for storing, stores in (("", "nothing; a report in memory"), ("store", "its report as JSON"))
    ),
    *(Peer("inspect-ai==0.3.285", "a log with every sample", "inspect_ai_peer.py", scorers) for scorers in (1, 20)),
    Peer("deepeval==4.3.1", "a JSON file of results", "deepeval_peer.py"),
    Peer("lm-eval==0.4.13", "samples as JSON", "lm_eval_peer.py"),
    Peer("promptfoo@0.121.20", "SQLite and JSON"),
)


def _promptfoo_config(samples: Path) -> dict[str, object]:
    return {
        "prompts": ["{{input}}"],
        "providers": [f"file://{HERE / 'promptfoo_provider.js'}"],
        "tests": [
            {
                "vars": {"input": one["input"], "answer": one["answer"]},
                "assert": [{"type": "equals", "value": one["expected"]}],
            }
            for one in map(json.loads, samples.read_text().splitlines())
        ],
    }
