"""Tables of the track: a suite's catalogue, and the result for each term and dimension of a turn."""

from eval_pipeline.store.schemas import CASE_ID, SAMPLE, TURN_ID, TURN_INDEX, Column, Table

_DATASET_ID = Column("dataset_id", "VARCHAR", "Id of the data set, `AGENCY:ID`; never NULL.")
_DIMENSION = Column("dimension", "VARCHAR", "Id of the dimension; never NULL.")
_FROM_TARGET = Column("from_target", "BOOLEAN", "Only a target names it, the structures lack it; never NULL.")

DATA_SETS = Table(
    "sdmx_data_sets",
    "One row per data set of a suite's catalogue.",
    (
        _DATASET_ID,
        Column("name", "VARCHAR", "Name for people; never NULL."),
        Column("description", "VARCHAR", "What it holds, in the structure's words; empty for none."),
        Column("version", "VARCHAR", "Version of the dataflow; empty where only a list of terms names it."),
    ),
    key="suite",
)

DATA_SET_DIMENSIONS = Table(
    "sdmx_data_set_dimensions",
    "One row per dimension of a data set of a suite's catalogue; those without a code list are left out.",
    (
        _DATASET_ID,
        _DIMENSION,
        Column("name", "VARCHAR", "Name for people; never NULL."),
        Column("codelist", "VARCHAR", "Which code list its terms are from, `AGENCY:ID(VERSION)`; never NULL."),
    ),
    key="suite",
)

CODES = Table(
    "sdmx_codes",
    "One row per code of a code list of a suite's catalogue, in the order of the list.",
    (
        Column("codelist", "VARCHAR", "The code list, `AGENCY:ID(VERSION)`; never NULL."),
        Column("id", "VARCHAR", "Id of the code; never NULL."),
        Column("name", "VARCHAR", "Name of the code; never NULL."),
        Column("description", "VARCHAR", "In the structure's words; NULL: none."),
        Column("parent", "VARCHAR", "Id of the code above it; NULL: it is at the top, or the list is flat."),
        Column("synonyms", "VARCHAR", "Other names, parted by `; `; NULL: none."),
        _FROM_TARGET,
    ),
    key="suite",
)

CODES_WITH_DATA = Table(
    "sdmx_codes_with_data",
    "One row per code of a data set's dimension that has data, for dimensions whose constraints tell.",
    (_DATASET_ID, _DIMENSION, Column("id", "VARCHAR", "Id of the code; never NULL.")),
    key="suite",
)

GIVEN_CANDIDATES = Table(
    "sdmx_given_candidates",
    "One row per turn of the suite's own file of candidates; empty for suites whose candidates are searched.",
    (
        CASE_ID,
        TURN_INDEX,
        Column("line", "BIGINT", "Line of the file, from 1; never NULL."),
        Column("questions", "JSON", "For which questions the file says they were made, oldest first; NULL: not said."),
        Column("candidates", "JSON", "Terms by data set and dimension, the best first; never NULL."),
    ),
    key="suite",
)

SUITE_TABLES = (DATA_SETS, DATA_SET_DIMENSIONS, CODES, CODES_WITH_DATA, GIVEN_CANDIDATES)

_TURN = (TURN_ID, CASE_ID, TURN_INDEX, SAMPLE)

TERMS = Table(
    "sdmx_terms",
    "One row per term of a turn that is in the target or was named by the final attempt, in the catalogue or not.",
    (
        *_TURN,
        _DATASET_ID,
        _DIMENSION,
        Column("id", "VARCHAR", "Id of the term; never NULL."),
        Column("name", "VARCHAR", "Name of the term; never NULL."),
        Column("verdict", "VARCHAR", "`tp` in both, `fp` selected only, `fn` in the target only; never NULL."),
        Column("retrieved", "BOOLEAN", "It was among the candidates that the request was offered; never NULL."),
        Column("searched", "BOOLEAN", "Its dimension is too large to show, and was searched; NULL: older rows."),
        Column(
            "retrieval_rank",
            "BIGINT",
            "Its rank in the search or the suite's own candidates, from 1; NULL: not searched for, or not among 300.",
        ),
        _FROM_TARGET,
        Column("valid", "BOOLEAN", "The catalogue has data set, dimension and id; NULL: scored before this was kept."),
        Column(
            "doubt",
            "VARCHAR",
            "What the catalogue lacks: `unknown_data_set`, `unknown_dimension`, `unknown_code`, `other_name` for a "
            "known id, `no_data` for a code that a constraint says has none; NULL: nothing.",
        ),
    ),
)

DIMENSIONS = Table(
    "sdmx_dimensions",
    "One row per dimension of a turn that the target or the final attempt's selection names.",
    (
        *_TURN,
        _DATASET_ID,
        _DIMENSION,
        Column("target", "VARCHAR", "`given`, `empty` (named without a term) or `absent` from the target; never NULL."),
        Column("said_as", "VARCHAR", "The data set's id as the answer wrote it, such as `A:B(1.0+)`; NULL: as here."),
        Column("target_as", "VARCHAR", "The data set's id as the target's file writes it; NULL: as here."),
        Column("true_positives", "BIGINT", "Terms in both, from 0; never NULL."),
        Column("false_positives", "BIGINT", "Terms selected only, from 0; never NULL."),
        Column("false_negatives", "BIGINT", "Terms in the target only, from 0; never NULL."),
        Column("precision", "DOUBLE", "tp / (tp + fp), 0 where nothing was selected; NULL: no term on either side."),
        Column("recall", "DOUBLE", "tp / (tp + fn); NULL: the target has no term here."),
    ),
)

TURN_TABLES = (TERMS, DIMENSIONS)
