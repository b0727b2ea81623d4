"""Turns and dollars of `run --until` on the shipped suites: `python -m benchmarks.adaptive`.

`simulated-strong` answers each suite in full. `simulated-weak` is then asked until it is decided against it, until its
accuracy is known to ±5 points, and in full. Both are priced like a real model, by the tokens that they count.
"""

import argparse
import shutil
import tempfile
from datetime import date
from pathlib import Path

import yaml

import eval_pipeline as ep
from eval_pipeline.api.running import Run

PRICE = {"input": 3.0, "output": 15.0}
RULES = ("decided-against simulated-strong", "±5pp", None)
DAY = date(2026, 3, 1)


def priced(data: Path, folder: Path) -> Path:
    """A copy of the suites and model versions, with prices."""
    shutil.copytree(data, folder, symlinks=True)
    file = folder / "model_versions.yaml"
    told = yaml.safe_load(file.read_text())
    for version in told["model_versions"]:
        if version["provider"] == "simulated":
            version["price"] = PRICE
    file.write_text(yaml.safe_dump(told, allow_unicode=True))
    return folder


def main() -> None:
    """Prints a line for each suite and rule."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--suite", action="append", help="a suite; default: all shipped ones")
    options.add_argument("--data", type=Path, default=Path(__file__).parents[1] / "data")
    chosen = options.parse_args()
    suites = chosen.suite or sorted(path.name for path in (chosen.data / "suites").iterdir())
    with tempfile.TemporaryDirectory() as folder:
        home, data = Path(folder) / "home", priced(chosen.data, Path(folder) / "data")
        for suite in suites:

            def run(version: str, day: date, rule: str | None, suite: str = suite) -> Run:
                return ep.run(suite, version, eval_date=day, until=rule, home=home, data=data, report=False)

            run("simulated-strong", DAY, None)
            for place, rule in enumerate(RULES):
                day = date(2026, 3, 2 + place)
                found = run("simulated-weak", day, rule)
                for problem in found.problems:
                    print(f"{suite} · {rule or 'in full'}: {problem}", flush=True)
                if not found.rows:
                    continue
                row = found.rows[0]
                print(
                    f"{suite} · {rule or 'in full'}: {row['turns']} turns, ${row['usd_total']:.4f}, "
                    f"{row['accuracy']:.1%} [{row['low']:.1%}, {row['high']:.1%}]",
                    flush=True,
                )


if __name__ == "__main__":
    main()
