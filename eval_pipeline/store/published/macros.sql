-- What people call with a name: a name that is not there is an error, not an empty table.
-- The second half of each UNION gives no row; it is there to be an error, which a join with an empty side would not be.
-- They hold no WITH, which DuckDB 1.4.0 and 1.4.1 cannot read in a macro; views may.

CREATE MACRO meta.known_suite(asked) AS CASE
    WHEN EXISTS (SELECT 1 FROM meta.known_suites AS k WHERE k.name = asked) THEN asked
    ELSE error('there is no suite ''' || coalesce(asked, 'NULL') || '''; there are: '
        || coalesce((SELECT string_agg(k.name, ', ' ORDER BY k.name) FROM meta.known_suites AS k), 'none'))
END;

COMMENT ON MACRO meta.known_suite IS 'meta.known_suite(name): the name, or an error that says which suites there are.';

CREATE MACRO meta.known_model_version(asked) AS CASE
    WHEN EXISTS (SELECT 1 FROM meta.known_model_versions AS k WHERE k.name = asked) THEN asked
    ELSE error('there is no model version ''' || coalesce(asked, 'NULL') || '''; there are: '
        || coalesce((SELECT string_agg(k.name, ', ' ORDER BY k.name) FROM meta.known_model_versions AS k), 'none'))
END;

COMMENT ON MACRO meta.known_model_version IS 'meta.known_model_version(name): the name, or an error that says which there are.';

CREATE MACRO meta.known_turn(asked) AS CASE
    WHEN EXISTS (SELECT 1 FROM meta.known_turns AS k WHERE k.name = asked) THEN asked
    ELSE error('there is no turn ''' || coalesce(asked, 'NULL') || '''; ids are <suite>/<case>#<index>, such as '
        || coalesce((SELECT min(k.name) FROM meta.known_turns AS k), 'none'))
END;

COMMENT ON MACRO meta.known_turn IS 'meta.known_turn(turn_id): the id, or an error that shows what ids look like.';

CREATE MACRO explain_turn(turn_id, model_version, on_date := NULL) AS TABLE
SELECT s.step, s.sample, s.attempt, s.kind, s.name, s.text, s.value, s.details
FROM explain_turn AS s
JOIN (
    SELECT max(e.eval_date) AS eval_date FROM meta.evaluated_turns AS e
    WHERE e.turn_id = turn_id AND e.model_version = model_version
        AND (on_date IS NULL OR e.eval_date = CAST(on_date AS DATE))
) AS newest ON newest.eval_date = s.eval_date
WHERE s.turn_id = turn_id AND s.model_version = model_version
UNION ALL BY NAME
SELECT meta.known_turn(turn_id) AS text
WHERE meta.known_turn(turn_id) IS NULL OR meta.known_model_version(model_version) IS NULL
ORDER BY step;

COMMENT ON MACRO TABLE explain_turn IS 'explain_turn(turn_id, model_version, on_date := newest): everything behind one '
    'result in order: case with its source, question, gold; for each sample the attempts (prompt, response, '
    'validation, outcome), evidence, judgement, answer and metrics.';

CREATE MACRO leaderboard(suite, with_retired := false) AS TABLE
SELECT
    d.model_version, d.eval_date, CASE WHEN d.sampled THEN 'drawn' WHEN d.scope <> 'full' THEN 'part' ELSE d.scope END AS scope,
    d.turns, d.accuracy, d.low, d.high, d.tokens_per_success, d.usd_per_success, d.simulated
FROM leaderboard_details AS d
WHERE d.suite = suite AND (with_retired OR NOT d.retired)
UNION ALL BY NAME
SELECT meta.known_suite(suite) AS model_version WHERE meta.known_suite(suite) IS NULL
ORDER BY accuracy DESC NULLS LAST, tokens_per_success NULLS LAST, model_version;

COMMENT ON MACRO TABLE leaderboard IS 'leaderboard(suite, with_retired := false): every model version in use '
    '(with_retired: those that no file lists any more too) on its latest date, the most accurate first, with the 95% '
    'interval of its accuracy (scope: the full suite, a part, or drawn cases from which it is estimated) and what a successful conversation costs. Turns whose gold is overridden, the accuracy '
    'without that, and more columns: leaderboard_details.';

CREATE MACRO leaderboard_details(suite, with_retired := false) AS TABLE
SELECT d.*
FROM leaderboard_details AS d
WHERE d.suite = suite AND (with_retired OR NOT d.retired)
UNION ALL BY NAME
SELECT meta.known_suite(suite) AS model_version WHERE meta.known_suite(suite) IS NULL
ORDER BY accuracy DESC NULLS LAST, tokens_per_success NULLS LAST, model_version;

COMMENT ON MACRO TABLE leaderboard_details IS 'leaderboard_details(suite, with_retired := false): as leaderboard, with all '
    'that was spent, coverage, and whether it is on the front of cost and accuracy.';

CREATE MACRO compare(model_a, model_b, suite) AS TABLE
SELECT c.turn_id, c.sample, c.question, c.expected, c.correct_a, c.correct_b, c.change, c.answer_a, c.answer_b
FROM (
SELECT d.*
FROM compare_details AS d
WHERE d.model_a = model_a AND d.model_b = model_b AND d.suite = suite
UNION ALL BY NAME
SELECT meta.known_suite(suite) AS turn_id
WHERE meta.known_suite(suite) IS NULL OR meta.known_model_version(model_a) IS NULL
    OR meta.known_model_version(model_b) IS NULL
) AS c
ORDER BY c.case_id, c.turn_index, c.sample;

COMMENT ON MACRO TABLE compare IS 'compare(model_a, model_b, suite): the turns scored for both on their latest '
    'dates (not those whose question or gold has changed between); change is unanswered where one gave no response, else '
    'broken (a right, b wrong), fixed (a wrong, b right) or same, NULL where one was not scored. More columns: '
    'compare_details; intervals and p-values: model_comparisons.';

CREATE MACRO compare_details(model_a, model_b, suite) AS TABLE
SELECT d.*
FROM compare_details AS d
WHERE d.model_a = model_a AND d.model_b = model_b AND d.suite = suite
UNION ALL BY NAME
SELECT meta.known_suite(suite) AS turn_id
WHERE meta.known_suite(suite) IS NULL OR meta.known_model_version(model_a) IS NULL
    OR meta.known_model_version(model_b) IS NULL
ORDER BY case_id, turn_index, sample;

COMMENT ON MACRO TABLE compare_details IS 'compare_details(model_a, model_b, suite): as compare, with tokens and who gave '
    'a response.';
