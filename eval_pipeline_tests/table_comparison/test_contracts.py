"""What a question insists on by its words."""

import pytest

from eval_pipeline.table_comparison.contracts import Contract, insisted_by
from eval_pipeline.table_comparison.relaxations import Relaxation

QUESTIONS = {
    Relaxation.ROW_ORDER: (
        "Names from highest to lowest salary",
        "Names from Z to A",
        "List the names A-Z",
        "from the most expensive film to the cheapest",
        "newest to oldest",
        "The ten longest films, longest first.",
        "starting with the most expensive",
        "The stations, the busiest first.",
        "busiest station first, please",
        "Give the days oldest-first.",
        "from quietest to busiest",
        "Start with the dearest.",
        "with the dearest at the top",
        "in increasing order of age",
        "in the order they were visited",
        "Rank the customers by spending",
        "Arrange the films by year",
        "sorted by price",
    ),
    Relaxation.ROUNDING: (
        "Average to two decimal places",
        "Average with 2 decimals",
        "Round the average price to 2 digits",
        "rounded to the nearest cent",
        "Give the average to 2 d.p.",
    ),
    Relaxation.DUPLICATES: (
        "List each city only once",
        "remove duplicates",
        "no duplicate names",
        "the unique names of all customers",
        "distinct cities",
    ),
}
OTHERS = (
    "List whom to call in order to find the best customers",
    "Which ranking agency rated it?",
    "What is the most common sort of cheese?",
    "Which customers placed an order in 2020?",
    "Who ordered from the shop?",
    "Which flights go from A to B?",
    "Which are the most common first names?",
    "Who had arranged marriages?",
    "What decimal number is the price?",
    "In which round did the driver win?",
    "Show the unique id of each product",
    "Which guest came first?",
    "Do the test first, then answer.",
    "Which flights go from the forest to the coast?",
    "What is the nearest first aid post?",
    "Which routes start at the busiest station?",
    "How many trips begin from the busiest district?",
    "Which shops have the highest price on top of the tax?",
    "List the flights from the nearest airport to Berlin.",
)


@pytest.mark.parametrize(("one", "question"), [(one, text) for one, texts in QUESTIONS.items() for text in texts])
def test_a_question_insists_by_its_words(one: Relaxation, question: str) -> None:
    assert insisted_by(question) == {one}


@pytest.mark.parametrize("question", OTHERS)
def test_words_that_only_look_like_it_insist_on_nothing(question: str) -> None:
    assert not insisted_by(question)


@pytest.mark.parametrize(
    ("contract", "insisted", "close"),
    [
        (
            Contract(),
            [Relaxation.ROUNDING],
            False,
        ),  # 466 for 466.02 is within the tolerance, and not the cents asked for
        (Contract(insist=(Relaxation.ROUNDING,)), [], False),
        (Contract(), [Relaxation.ROW_ORDER], True),
        (Contract(overlook=(Relaxation.TOLERANCE,)), [Relaxation.ROUNDING], True),
        (Contract(preset="defog"), [Relaxation.ROUNDING], True),  # defog's own evaluator does not read decimals
    ],
)
def test_where_decimals_count_numbers_may_not_be_close_only(
    contract: Contract, insisted: list[Relaxation], close: bool
) -> None:
    assert (Relaxation.TOLERANCE in contract.overlooked(insisted)) is close
