"""Drawing answers to review: probabilities that hold, and figures that stay unbiased whoever disagrees."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.analysis.reviews.answers import Answer, Place
from eval_pipeline.analysis.reviews.corrected import headline_rater
from eval_pipeline.analysis.reviews.drawing import (
    ALL_RIGHT,
    ALL_WRONG,
    DISAGREEMENT,
    JUDGE_AND_METRIC,
    METRICS,
    MODELS,
    NARROWEST,
    UNIFORM,
    UNSCORED,
    allocation,
    draw,
    strata_of,
)
from eval_pipeline.analysis.reviews.figures import estimated_rows, figure_rows, unborne
from eval_pipeline.analysis.reviews.scores import NONE, AllScores, AnswerPlaces, ReviewedScores, Verdicts, together
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import text_hash
from eval_pipeline.core.model import Partition
from eval_pipeline.suites.reviews.queues import Queue, QueueItem
from eval_pipeline.suites.reviews.review import Review
from eval_pipeline_tests.support import DAY


def answer(index: int, correct: bool | None, *, judged: bool | None = None, version: str = "a") -> Answer:
    return Answer(
        (f"s/c{index}#0", version, str(DAY), 0),
        Partition("s", version, DAY),
        correct,
        judged,
        cluster=f"c{index}",
        simulated=False,
        response_hash=text_hash(f"{version} {index}"),
    )


def verdicts(values: Iterable[bool | None]) -> Verdicts:
    return np.array([NONE if value is None else int(value) for value in values], np.int8)


def scores_of(answers: Sequence[Answer], disputed: Collection[Answer] = ()) -> AllScores:
    """The columns of answers."""
    found = []
    for partition in dict.fromkeys(one.partition for one in answers):
        own = [one for one in answers if one.partition == partition]
        found.append(
            ReviewedScores(
                partition,
                pa.array([one.turn_id for one in own], pa.string()),
                np.array([one.place[3] for one in own], np.int64),
                verdicts(one.correct for one in own),
                verdicts(one.judged for one in own),
                np.array([one in disputed for one in own], bool),
            )
        )
    return together(found)


def drawn(answers: Sequence[Answer], by: str, size: int, seed: int, known: Mapping[Place, bool] | None = None) -> Queue:
    """A queue of answers whose texts are known already."""
    hashed = {one.place: one for one in answers}
    return draw(scores_of(answers), by, size, seed, lambda found: [hashed[place] for _, place in found], known)


def test_the_kinds_are_by_the_first_disagreement() -> None:
    contradicted = [answer(0, True, judged=False), answer(1, True, judged=True)]
    others = [
        answer(2, True),
        answer(2, False, version="b"),
        answer(3, True, judged=True),
        answer(4, False, judged=False),
        answer(5, None, judged=True),
    ]
    found = strata_of(scores_of(contradicted + others, disputed=contradicted))
    counts = {name: len(members) for name, members in found.items()}
    assert counts == {JUDGE_AND_METRIC: 1, METRICS: 1, MODELS: 2, ALL_RIGHT: 1, ALL_WRONG: 1, UNSCORED: 1}


@given(
    st.lists(
        st.builds(
            answer,
            st.integers(0, 4),
            st.sampled_from([None, True, False]),
            judged=st.sampled_from([None, True, False]),
            version=st.sampled_from("ab"),
        ),
        unique_by=lambda one: one.place,
    ),
    st.randoms(),
)
def test_every_answer_is_of_one_kind_whatever_the_order_of_the_record(answers: list[Answer], random: Random) -> None:
    disputed = [one for one in answers if one.correct is not None and random.random() < 0.2]
    scores = scores_of(answers, disputed)
    places = [scores.place(index)[1] for index in range(len(scores))]
    assert places == sorted(one.place for one in answers)
    said: dict[str, set[bool | None]] = {}
    for one in answers:
        said.setdefault(one.turn_id, set()).update({one.correct} - {None})

    def kind(one: Answer) -> str:
        if one.correct is None:
            return UNSCORED
        if one.judged not in {None, one.correct}:
            return JUDGE_AND_METRIC
        if one in disputed:
            return METRICS
        if len(said[one.turn_id]) > 1:
            return MODELS
        return ALL_RIGHT if one.correct else ALL_WRONG

    found = {places[index]: name for name, members in strata_of(scores).items() for index in members}
    assert found == {one.place: kind(one) for one in answers}


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3)), unique=True), st.randoms())
def test_answers_are_found_in_tables_of_any_order_and_extent(known: list[tuple[str, int]], random: Random) -> None:
    asked = [*known, ("a", 7), ("b", 9), ("other", 0)]
    for wanted in (known, random.sample(asked, len(asked))):
        rows = pa.table(
            {
                "turn_id": pa.array([turn for turn, _ in wanted], pa.string()),
                "sample": pa.array([sample for _, sample in wanted], pa.int64()),
            }
        )
        turns, samples = pa.array([turn for turn, _ in known], pa.string()), np.array([n for _, n in known], np.int64)
        at, found = AnswerPlaces(turns, samples).find(rows)
        told = [known[index] if there else None for index, there in zip(at, found, strict=True)]
        assert told == [one if one in known else None for one in wanted]


@given(
    st.dictionaries(st.sampled_from([METRICS, MODELS, ALL_RIGHT, ALL_WRONG]), st.integers(1, 400), min_size=1),
    st.integers(1, 500),
)
def test_exactly_as_many_as_asked_for_are_drawn_and_no_kind_goes_without(
    populations: dict[str, int], size: int
) -> None:
    least = sum(min(2, count) for count in populations.values())
    if min(size, sum(populations.values())) < least:
        with pytest.raises(UsageError, match=f"at least {least}"):
            allocation(populations, size)
        return
    counts = allocation(populations, size)
    assert sum(counts.values()) == min(size, sum(populations.values()))
    assert all(min(2, populations[name]) <= count <= populations[name] for name, count in counts.items())


def test_more_is_drawn_of_what_is_in_dispute() -> None:
    """Neyman: 200 · 0.5 to 800 · 0.218 is 0.364 to 0.636."""
    assert allocation({MODELS: 200, ALL_RIGHT: 800}, 100) == {MODELS: 36, ALL_RIGHT: 64}


def test_the_same_seed_draws_the_same() -> None:
    answers = [answer(index, index % 3 > 0) for index in range(40)]
    first, again, other = (drawn(answers, UNIFORM, 10, seed) for seed in (1, 1, 2))
    assert first.id == again.id != other.id
    assert first.items == again.items
    assert first.strata["all"].population == 40
    with pytest.raises(UsageError, match="every call failed"):
        drawn([], UNIFORM, 1, 0)


def test_every_answer_is_drawn_as_often_as_its_probability_says() -> None:
    answers = population()[::20]
    counts = dict.fromkeys((one.key for one in answers), 0)
    chances: dict[object, float] = {}
    for seed in range(400):
        queue = drawn(answers, DISAGREEMENT, 20, seed)
        for item in queue.items:
            counts[item.answer] += 1
            chances[item.answer] = queue.probability(item)
    assert all(counts[key] == 400 for key, chance in chances.items() if chance == 1)
    open_ones = {key: chance for key, chance in chances.items() if chance < 1}
    errors = [(counts[key] / 400 - chance) / (chance * (1 - chance) / 400) ** 0.5 for key, chance in open_ones.items()]
    assert len(chances) == len(answers)
    assert np.std(errors) == pytest.approx(1.0, abs=0.2)


def population() -> list[Answer]:
    """A suite of 1,000 turns and two model versions, with a judge that errs."""
    rng = np.random.default_rng(5)
    hard = rng.uniform(size=1000)
    found = []
    for version, skill in (("a", 0.85), ("b", 0.7)):
        right = rng.uniform(size=1000) < skill + 0.3 * (0.5 - hard)
        judged = np.where(rng.uniform(size=1000) < 0.93, right, ~right)
        found += [answer(i, bool(right[i]), judged=bool(judged[i]), version=version) for i in range(1000)]
    return found


def people(answers: list[Answer]) -> dict[object, bool]:
    """What people would say of each: the metric is wrong more often where the judge contradicts it."""
    rng = np.random.default_rng(6)
    return {
        one.key: bool(one.correct) != bool(rng.uniform() < (0.5 if one.judged != one.correct else 0.04))
        for one in answers
    }


TRUE_FIGURES = (
    "accuracy", "metric_accuracy", "metric_true_positive_rate", "metric_true_negative_rate", "metric_kappa",
    "metric_corrected_accuracy", "judge_corrected_accuracy", "metric_bias", "judge_bias",
)  # fmt: skip


def truth(answers: list[Answer], says: dict[object, bool], version: str | None) -> dict[str, float]:
    own = [one for one in answers if version in (None, one.partition.model_version)]
    right = np.array([says[one.key] for one in own])
    metric = np.array([bool(one.correct) for one in own])
    same = float((right == metric).mean())
    chance = float(right.mean() * metric.mean() + (1 - right.mean()) * (1 - metric.mean()))
    judge = np.array([bool(one.judged) for one in own])
    figures = (
        right.mean(), same, metric[right].mean(), (~metric[~right]).mean(), (same - chance) / (1 - chance),
        right.mean(), right.mean(), metric.mean() - right.mean(), judge.mean() - right.mean(),
    )  # fmt: skip
    return dict(zip(TRUE_FIGURES, map(float, figures), strict=True))


@pytest.mark.parametrize("draws", [12, pytest.param(60, marks=pytest.mark.soak)])
@pytest.mark.parametrize(("by", "part"), [(DISAGREEMENT, 1.0), (DISAGREEMENT, 0.5), (UNIFORM, 1.0), (NARROWEST, 1.0)])
def test_figures_of_a_queue_are_those_of_all_answers(by: str, part: float, draws: int) -> None:
    """Unbiased within the error of the simulation, and 95% intervals that cover; also halfway through the queue."""
    answers = population()
    says, places = people(answers), {one.place: one for one in answers}
    truths = {version: truth(answers, says, version) for version in (None, "a", "b")}
    size = 120
    reasons: list[str] = []
    values: dict[tuple[str | None, str], list[float]] = {}
    covered: dict[tuple[str | None, str], int] = {}
    naive = []
    known = {one.place: says[one.key] for one in answers[::7]} if by == NARROWEST else {}
    for seed in range(draws):
        queue = drawn(answers, by, size, seed, known)
        reviews = [said_from(item, queue, says[item.answer]) for item in queue.items[: int(part * size)]]
        naive.append(np.mean([review.verdict == "right" for review in reviews]))
        for row in estimated_rows(reviews, {queue.id: queue}, places):
            if row["queue"] == queue.id and row["figure"] in TRUE_FIGURES:
                key = row["model_version"], row["figure"]
                values.setdefault(key, []).append(row["value"])
                if row["low"] is None:
                    reasons.append(row["reason"])
                else:
                    true = truths[key[0]][key[1]]
                    covered[key] = covered.get(key, 0) + (row["low"] <= true <= row["high"])
    assert len(values) == 3 * len(TRUE_FIGURES)
    for (version, figure), found in values.items():
        right = truths[version][figure]
        off = abs(float(np.mean(found)) - right)
        # Ratios have a bias of the order of 1/n beside the error of the simulation.
        assert off < 3.5 * float(np.std(found)) / draws**0.5 + 0.01, (version, figure, np.mean(found), right)
    assert len(reasons) < draws, set(reasons)  # of 15 figures a draw
    assert sum(covered.values()) / (draws * len(covered) - len(reasons)) > 0.92, covered
    if by == DISAGREEMENT:  # who counts what was drawn as if it were all is off by more than chance
        right = truths[None]["accuracy"]
        assert abs(float(np.mean(naive)) - right) > 5 * float(np.std(naive)) / draws**0.5


def test_the_narrowest_queue_learns_where_the_metric_errs() -> None:
    """What people said before decides how many of each kind are drawn, and makes the corrected accuracy narrower."""
    answers = population()
    says, places = people(answers), {one.place: one for one in answers}
    known = {one.place: says[one.key] for one in answers[::7]}
    widths = {}
    for by in (UNIFORM, NARROWEST):
        ends = []
        for seed in range(6):
            queue = drawn(answers, by, 100, seed, known)
            reviews = [said_from(item, queue, says[item.answer]) for item in queue.items]
            (row,) = [
                row
                for row in estimated_rows(reviews, {queue.id: queue}, places)
                if (row["queue"], row["model_version"], row["figure"]) == (queue.id, None, "metric_corrected_accuracy")
            ]
            ends.append(row["high"] - row["low"])
        widths[by] = np.mean(ends)
    assert widths[NARROWEST] < 0.85 * widths[UNIFORM]
    queue, plain = drawn(answers, NARROWEST, 100, 0, known), drawn(answers, NARROWEST, 100, 0)
    name = f"{MODELS}, metric says right"
    assert queue.strata[name].drawn < 0.85 * plain.strata[name].drawn, "it is not half wrong there, as was assumed"
    assert {stratum.population for stratum in queue.strata.values()} == {s.population for s in plain.strata.values()}


def said_from(item: QueueItem, queue: Queue, right: bool) -> Review:
    """The review of a drawn answer."""
    return Review.new(
        who="r",
        verdict="right" if right else "wrong",
        queue=queue.id,
        probability=queue.probability(item),
        **item.model_dump(exclude={"stratum", "metric", "judge"}),
    )


def test_older_queues_without_cells_have_all_figures_but_the_corrected_ones() -> None:
    answers = [answer(index, index % 3 > 0) for index in range(30)]
    queue, places = drawn(answers, UNIFORM, 10, 0), {one.place: one for one in answers}
    told = queue.model_dump(mode="json")
    for stratum in told["strata"].values():
        assert sum(cell["answers"] for cell in stratum["cells"]) == 30
        del stratum["cells"]
    for item in told["items"]:
        del item["metric"], item["judge"]
    older = Queue.model_validate(told)
    reviews = [said_from(item, queue, right=True) for item in queue.items]
    now, then = ({row["figure"] for row in estimated_rows(reviews, {q.id: q}, places)} for q in (queue, older))
    assert now - then == {"metric_corrected_accuracy"} and not then - now
    assert headline_rater(queue) == headline_rater(older) == "metric"
    assert headline_rater(drawn([answer(1, True, judged=True)], UNIFORM, 1, 0)) == "judge"


def test_a_bias_is_also_told_by_tag() -> None:
    answers = [replace(answer(i, True), tags=frozenset({"hard"} if i < 12 else {"easy"})) for i in range(24)]
    queue, places = drawn(answers, UNIFORM, 24, 0), {one.place: one for one in answers}
    hard = {one.key for one in answers[:12]}
    reviews = [said_from(item, queue, item.answer not in hard) for item in queue.items]
    rows = estimated_rows(reviews, {queue.id: queue}, places)
    found = {row["label"]: (row["n"], row["value"]) for row in rows if row["figure"] == "metric_bias"}
    assert found == {None: (24, 0.5), "easy": (12, 0.0), "hard": (12, 1.0)}


def test_reviews_too_few_for_an_interval_bear_no_figure_but_a_sentence() -> None:
    """Six reviews bear none at all; many bear shares, but no kappa that could be anything; all answers are exact."""
    answers = [answer(index, index % 3 > 0) for index in range(90)]
    queue, places = drawn(answers, UNIFORM, 60, 0), {one.place: one for one in answers}
    reviews = [said_from(item, queue, index % 2 > 0) for index, item in enumerate(queue.items)]
    for count in (1, 6, 11):
        rows = figure_rows(reviews[:count], {queue.id: queue}, places)
        assert rows and {(row["value"], row["low"], row["reason"] is None) for row in rows} == {(None, None, False)}
        assert any("accuracy" in told and "kappa" in told and "fewer than 12" in told for told in unborne(rows))
    widest = {False: 0.5, True: 1.0}
    rows = figure_rows(reviews[:18], {queue.id: queue}, places)
    told, untold = ([row for row in rows if (row["value"] is None) == none] for none in (False, True))
    assert told and untold and all(row["n"] >= 12 for row in told)
    for row in told:
        assert row["high"] - row["low"] <= widest["kappa" in row["figure"] or "bias" in row["figure"]]
    assert not [row for row in figure_rows(reviews, {queue.id: queue}, places) if row["value"] is None]
    # Of one conversation, and where one of the two says the same of everything, there is no interval however many.
    alike = [replace(one, cluster="c") for one in answers]
    for of, right in ((alike, lambda place: place % 2 > 0), (answers, lambda _: True)):
        found = {one.place: one for one in of}
        reviews = [said_from(item, queue, right(index)) for index, item in enumerate(queue.items)]
        rows = figure_rows(reviews, {}, found)
        assert any(row["value"] is None and row["n"] >= 12 and row["reason"] for row in rows)
        assert not [row for row in rows if row["value"] is not None and row["low"] is None]
    few = answers[:4]
    queue = drawn(few, UNIFORM, 4, 0)
    whole = figure_rows([said_from(item, queue, right=True) for item in queue.items], {queue.id: queue}, places)
    assert [row["value"] for row in whole if (row["queue"], row["figure"]) == (queue.id, "accuracy")] == [1.0]


def test_what_somebody_came_by_counts_once_the_queue_has_asked_for_it() -> None:
    answers = [answer(index, index % 2 > 0) for index in range(10)]
    queue, places = drawn(answers, UNIFORM, 4, 0), {one.place: one for one in answers}

    def said(item: QueueItem, verdict: str, **more: object) -> Review:
        return Review.new(who="r", verdict=verdict, **item.model_dump(exclude={"stratum", "metric", "judge"}), **more)

    def counted(*reviews: Review) -> list[tuple[int, float]]:
        rows = estimated_rows(reviews, {queue.id: queue}, places)
        return [(row["n"], row["value"]) for row in rows if (row["queue"], row["figure"]) == (queue.id, "accuracy")]

    passing = said(queue.items[1], "right")
    asked = [said(item, "wrong", queue=queue.id, probability=0.4) for item in queue.items[:2]]
    assert counted(passing) == []
    assert counted(passing, asked[0]) == [(1, 0.0)]
    assert counted(passing, *asked) == [(2, 0.0)]
    # Said again elsewhere, the queue has asked for it all the same, and the last word counts.
    assert counted(*asked, said(queue.items[1], "right")) == [(2, 0.5)]
