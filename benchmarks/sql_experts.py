"""Verdicts on SQL beside those of experts, and published models under every contract.

`python -m benchmarks.sql_experts` reads public data (`EVAL_PUBLIC_DATA`): SQLExam's labels, and BIRD's mini-dev with
the queries that four models were published with. Their databases are made from statistics of the columns, so figures
are not those on the real data. Printed are, for each contract, how many answers it accepts of those that experts accept
and of those that they reject, with Cohen's kappa; the accuracy of each model; and the failure modes of wrong answers.
"""

import argparse
import json
import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from eval_pipeline.table_comparison.contracts import PRESETS, Contract, Preset
from eval_pipeline_plugins.data_sets.sql.column_statistics import DatabaseStatistics
from eval_pipeline_plugins.data_sets.sql.synthesis import synthesise
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.tracks.sql.cases.case_file import SqlGold
from eval_pipeline_plugins.tracks.sql.cases.gold import query_response
from eval_pipeline_plugins.tracks.sql.cases.source import Database, Options
from eval_pipeline_plugins.tracks.sql.damage import mode_of
from eval_pipeline_plugins.tracks.sql.metrics.verdict import is_right
from eval_pipeline_plugins.tracks.sql.responses.artefact import without_fence
from eval_pipeline_plugins.tracks.sql.responses.evidence import Compared, compare
from eval_pipeline_plugins.tracks.sql.responses.execute import validated
from eval_pipeline_tests.outside import SQL, given

BIRD = SQL / "bird_mini"


@dataclass
class Judged:
    """An answer; `label` is the experts' verdict, `found` is None if the query is refused or does not run."""

    group: str
    question: str
    generated: str
    gold: SqlGold
    label: bool | None = None
    found: Compared | None = None

    def right(self, preset: Preset, headline: str = "robust") -> bool:
        """Whether the answer is right under a preset."""
        if self.found is None:
            return False
        may = Contract(preset=preset).overlooked(self.found.insisted)
        verdict = self.found.ladder.verdict if self.found.ladder is not None else None
        return is_right(headline, may, self.found.needs, self.found.needed, verdict)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="every which question of BIRD's")
    asked = parser.parse_args()
    given(BIRD)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["EVAL_HOME"] = folder
        labelled = [*judged(Path(folder) / "labels", expert_pairs())]
        print(
            f"{len(labelled)} answers that experts labelled: accepted of those they accept, of those they reject, kappa"
        )
        for preset in PRESETS:
            for headline in ("robust", "execution_match"):
                told(f"{preset}, {headline}", [(one.right(preset, headline), bool(one.label)) for one in labelled])
        either = [(one.found is not None and bool(one.found.needed), bool(one.label)) for one in labelled]
        told("right, or right but for form", either)
        modes([one for one in labelled if not one.right("expert")])
        published = [*judged(Path(folder) / "bird", model_answers(asked.every))]
        print("\nBIRD's models: accuracy under each contract (robust), and bird_ex")
        for model in sorted({one.group for one in published}):
            mine = [one for one in published if one.group == model]
            shares = [f"{preset} {share([one.right(preset) for one in mine]):.1%}" for preset in PRESETS]
            ex = share([one.found is not None and one.found.published.get("bird_ex") == 1 for one in mine])
            print(f"{model:36} {'  '.join(shares)}  bird_ex {ex:.1%}")
        modes([one for one in published if not one.right("expert")])


def expert_pairs() -> Iterator[tuple[str, str, str, str, str, bool | None]]:
    for row in json.loads((SQL / "expert_labels/half.json").read_text()):
        yield "experts", row["db_id"], row["question"], row["predicted_sql"], row["gold_sql"], row["label"]


def model_answers(every: int) -> Iterator[tuple[str, str, str, str, str, bool | None]]:
    questions = json.loads((BIRD / "mini_dev_sqlite_even.json").read_text())
    for path in sorted(BIRD.glob("predictions_*.jsonl")):
        for line in path.read_text().splitlines()[::every]:
            answer = json.loads(line)
            asked = questions[answer["position"]]
            model = path.stem.removeprefix("predictions_").removesuffix("_sqlite_even")
            yield model, asked["db_id"], asked["question"], without_fence(answer["sql"]), asked["SQL"], None


def judged(place: Path, rows: Iterator[tuple[str, str, str, str, str, bool | None]]) -> Iterator[Judged]:
    """Runs and compares every answer on databases made from statistics."""
    found = list(rows)
    databases = made(place, [(database, gold) for _, database, _, _, gold, _ in found])
    options = Options()
    for group, name, question, sql, accepted, label in found:
        database = databases[name]
        gold = SqlGold((accepted,), (), True, True, (), 0, database, options, options.compare)
        one = Judged(group, question, sql, gold, label)
        if validated(sql, database).is_valid:
            one.found = compare(gold, sql, question)
        yield one


def made(place: Path, golds: Sequence[tuple[str, str]]) -> dict[str, Database]:
    statistics = json.loads((BIRD / "column_statistics.json").read_text())
    queries = defaultdict[str, list[str]](list)
    for name, sql in golds:
        queries[name].append(sql)
    (place / "databases").mkdir(parents=True)
    found = {}
    for told_of in map(DatabaseStatistics.model_validate, statistics):
        if told_of.name in queries:
            file = f"databases/{told_of.name}.sqlite"
            synthesise(told_of, queries[told_of.name], place / file)
            schema = SqlSchema.from_database(place / file)
            found[told_of.name] = Database(told_of.name, "sqlite", schema, (file,), told_of.name, 1, place)
    return found


def told(name: str, pairs: Sequence[tuple[bool, bool]]) -> None:
    accepted, rejected = [mine for mine, label in pairs if label], [mine for mine, label in pairs if not label]
    agreed, ours, theirs = (share(values) for values in ([a == b for a, b in pairs], *zip(*pairs, strict=True)))
    chance = ours * theirs + (1 - ours) * (1 - theirs)
    print(
        f"{name:30} {sum(accepted):4} of {len(accepted)} ({share(accepted):.0%})  {sum(rejected):3} of {len(rejected)} "
        f"({share(rejected):.0%})  {(agreed - chance) / (1 - chance):.2f}"
    )


def share(values: Sequence[bool]) -> float:
    return sum(values) / len(values)


def modes(wrong: Sequence[Judged]) -> None:
    found = Counter(mode_of(query_response(one.generated, "high"), one.gold) for one in wrong)
    print(f"failure modes of {len(wrong)} wrong answers: {dict(found.most_common())}")


if __name__ == "__main__":
    main()
