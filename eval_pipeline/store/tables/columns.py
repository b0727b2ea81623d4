"""Columns that several tables share, so that they mean the same everywhere."""

from eval_pipeline.store.schemas import Column

TURN_ID = Column("turn_id", "VARCHAR", "Public id of the turn, `<suite>/<case>#<index>`; never NULL.")
CASE_ID = Column("case_id", "VARCHAR", "Id of the case (conversation) within the suite; never NULL.")
TURN_INDEX = Column("turn_index", "BIGINT", "Position of the turn in its conversation, from 0; never NULL.")
SAMPLE = Column(
    "sample", "BIGINT", "Number of the answer among `samples_per_turn` independent ones, from 0; never NULL."
)
NUMBER = Column("number", "BIGINT", "0 for the first attempt, 1 and more for recovery attempts; never NULL.")
QUESTION = Column("question", "VARCHAR", "What the turn asks, as in the suite; never NULL.")
EXPECTED = Column("expected", "VARCHAR", "The right answer as text; NULL: the track has none.")
ANSWER = Column("answer", "VARCHAR", "The final attempt's answer as text; NULL: no attempt ran.")
CORRECT = Column(
    "correct", "BOOLEAN", "The track's primary metric on the final attempt; NULL: the turn could not be scored."
)
COMPLEXITY = Column(
    "complexity",
    "BIGINT",
    "Complexity of the turn by the track's first measure, in steps, from 0; NULL: the track has none.",
)
INPUT_TOKENS = Column(
    "input_tokens", "BIGINT", "Tokens sent in all attempts, including cache reads and writes; NULL: not reported."
)
OUTPUT_TOKENS = Column("output_tokens", "BIGINT", "Tokens received in all attempts; NULL: not reported.")
USD = Column("usd", "DOUBLE", "US dollars of all attempts at the prices of the day of the call; NULL: no known price.")
LATENCY_MS = Column(
    "latency_ms", "DOUBLE", "Milliseconds of the successful calls, summed over all attempts; NULL: unknown."
)
ATTEMPT_COUNT = Column(
    "attempts", "BIGINT", "Number of attempts, including the first, from 1; NULL: no attempt was made."
)
TAGS = Column("tags", "JSON", "List of the case's tags; an empty list for none.")
