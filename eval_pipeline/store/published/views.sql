-- Views of all suites and model versions; the macros of the same names choose from them.
-- Columns are always qualified: a parameter of a macro hides columns of its name in the views that it reads too.

CREATE VIEW meta.known_suites AS
SELECT s.suite AS name FROM suites AS s UNION SELECT p.suite FROM latest_partitions AS p;

CREATE VIEW meta.known_model_versions AS
SELECT v.model_version AS name FROM model_versions AS v UNION SELECT p.model_version FROM latest_partitions AS p;

CREATE VIEW meta.evaluated_turns AS
SELECT a.turn_id, a.model_version, a.eval_date FROM attempts AS a
UNION
SELECT t.turn_id, t.model_version, t.eval_date FROM turn_results AS t;

CREATE VIEW meta.known_turns AS
SELECT t.turn_id AS name FROM turns AS t UNION SELECT e.turn_id FROM meta.evaluated_turns AS e;

CREATE VIEW meta.answered_turns AS
SELECT
    t.suite, t.model_version, t.turn_id, t.sample,
    bool_or(t.stop_reason IS NOT NULL OR coalesce(t.call_error IN ('refused', 'max_tokens'), false)) AS answered
FROM latest_attempts AS t GROUP BY t.suite, t.model_version, t.turn_id, t.sample;

CREATE VIEW leaderboard_details AS
-- Each use of a view is planned anew, which takes longer than to run it, and turns are many: here each is read once.
WITH latest AS MATERIALIZED (
    SELECT p.*, coalesce(v.retired, false) AS retired, v.simulated
    FROM latest_partitions AS p LEFT JOIN model_versions AS v ON v.model_version = p.model_version
),
sums AS MATERIALIZED (
    SELECT
        t.suite, t.model_version, count(*) AS turns, count(t.correct) AS scored, avg(t.correct::BIGINT) AS accuracy,
        bool_or(t.simulated) AS simulated,
        -- What one turn does not tell nobody knows of all.
        CASE WHEN bool_and(t.tokens IS NOT NULL) THEN sum(t.tokens)::BIGINT END AS tokens,
        CASE WHEN bool_and(t.usd IS NOT NULL) THEN sum(t.usd) END AS usd,
        CASE WHEN bool_and(t.correct IS NULL OR t.tokens IS NOT NULL) THEN sum(t.tokens) FILTER (t.correct IS NOT NULL)
            / nullif(count(t.correct), 0) END AS tokens_per_scored,
        CASE WHEN bool_and(t.correct IS NULL OR t.usd IS NOT NULL) THEN sum(t.usd) FILTER (t.correct IS NOT NULL)
            / nullif(count(t.correct), 0) END AS usd_per_scored
    FROM turn_results AS t SEMI JOIN latest AS l USING (suite, model_version, eval_date)
    GROUP BY t.suite, t.model_version
),
costs AS MATERIALIZED (
    -- What a turn costs: dollars where they are known of all models (stand-ins apart), else tokens.
    SELECT
        s.suite, s.model_version, s.simulated, s.accuracy, count(*) OVER kind AS alike,
        CASE WHEN bool_and(s.usd_per_scored IS NOT NULL) OVER kind THEN s.usd_per_scored
            WHEN bool_and(s.tokens_per_scored IS NOT NULL) OVER kind THEN s.tokens_per_scored END AS cost
    FROM sums AS s
    -- A part beside the whole says nothing: only evaluations of one scope are held against each other.
    JOIN (
        SELECT p.suite, p.model_version FROM latest AS p WHERE NOT p.retired AND NOT contains(coalesce(p.scope, ''), '"until":')
        QUALIFY p.scope IS NOT DISTINCT FROM first_value(p.scope) OVER (
            PARTITION BY p.suite
            ORDER BY p.scope IS NOT DISTINCT FROM 'full' DESC, p.eval_date DESC, p.model_version
        )
    ) AS w ON w.suite = s.suite AND w.model_version = s.model_version
    -- Neither do means over drawn turns.
    LEFT JOIN (
        SELECT DISTINCT e.suite, e.model_version FROM sampled_estimates AS e
        SEMI JOIN latest AS l USING (suite, model_version, eval_date)
    ) AS d ON d.suite = s.suite AND d.model_version = s.model_version
    WHERE s.scored > 0 AND d.suite IS NULL
    WINDOW kind AS (PARTITION BY s.suite, s.simulated)
)
SELECT
    c.suite, c.model_version, c.eval_date, c.scope,
    -- A quotation mark within a case's id would be escaped.
    contains(c.scope, '"until":') AS sampled, coalesce(r.turns, 0) AS turns,
    coalesce(h.mean, r.accuracy) AS accuracy, h.low, h.high, coalesce(k.tokens_total, r.tokens) AS tokens,
    coalesce(k.usd_total, r.usd) AS usd, k.tokens_per_success, k.usd_per_success, f.on_front,
    coalesce(r.simulated, c.simulated) AS simulated, g.planned, g.asked, g.answered, g.readable,
    coalesce(g.scored, r.scored) AS scored, g.cases, g.cases_in_suite, g.left_out_because, c.retired,
    e.gold_edition, e.overridden_turns, e.excluded_turns, e.accuracy_published
FROM latest AS c
LEFT JOIN sums AS r ON r.suite = c.suite AND r.model_version = c.model_version
LEFT JOIN statistics AS h
    ON h.suite = c.suite AND h.model_version = c.model_version AND h.eval_date = c.eval_date AND h.metric = 'correct' AND h.split = 'all'
LEFT JOIN coverage AS g
    ON g.suite = c.suite AND g.model_version = c.model_version AND g.eval_date = c.eval_date
LEFT JOIN cost_per_correct_answer AS k
    ON k.suite = c.suite AND k.model_version = c.model_version AND k.eval_date = c.eval_date
LEFT JOIN (
    -- Without EXISTS, which DuckDB 1.4 cannot do here. One alone is on no front.
    SELECT
        m.suite, m.model_version,
        CASE WHEN any_value(m.cost) IS NOT NULL AND any_value(m.alike) > 1 THEN count(o.suite) = 0 END AS on_front
    FROM costs AS m LEFT JOIN costs AS o
        ON o.suite = m.suite AND o.simulated = m.simulated AND o.cost <= m.cost AND o.accuracy >= m.accuracy
        AND (o.cost < m.cost OR o.accuracy > m.accuracy)
    GROUP BY m.suite, m.model_version
) AS f ON f.suite = c.suite AND f.model_version = c.model_version
LEFT JOIN (
    SELECT
        t.suite, t.model_version, any_value(t.name) FILTER (t.edition = 'scored') AS gold_edition,
        any_value(t.overridden_turns) AS overridden_turns, any_value(t.excluded_turns) AS excluded_turns,
        any_value(t.mean) FILTER (t.edition = 'published') AS accuracy_published
    FROM gold_editions AS t SEMI JOIN latest AS l USING (suite, model_version, eval_date)
    WHERE t.metric = 'correct' GROUP BY t.suite, t.model_version
) AS e ON e.suite = c.suite AND e.model_version = c.model_version;

COMMENT ON VIEW leaderboard_details IS 'Every suite and model version on its latest date: accuracy with its 95% interval '
    '(sampled: estimated for the whole suite from drawn cases, see sampled_estimates), '
    'the cost in total and per successful conversation, whether it is on the Pareto front of cost and accuracy '
    '(stand-ins and models separately; NULL: no known cost, retired, or of another scope), and how many turns were planned, asked, answered, '
    'readable and scored (NULL: not on record); how many cases of the suite they are of, and why others were left out; the edition of the gold that accuracy stands for, how many turns of it are '
    'overridden or excluded, and the accuracy without overrides (NULL: there are none).';

CREATE VIEW leaderboard AS
SELECT
    d.suite, d.model_version, d.eval_date, d.turns, d.accuracy, d.low, d.high, d.tokens_per_success, d.usd_per_success,
    d.simulated
FROM leaderboard_details AS d
WHERE NOT d.retired
ORDER BY d.suite, d.accuracy DESC NULLS LAST, d.tokens_per_success NULLS LAST, d.model_version;

COMMENT ON VIEW leaderboard IS 'All suites, each with the latest evaluation of every model version in use, the most accurate first, '
    'with 95% intervals; of drawn turns the estimate for the whole suite (sampled_estimates). leaderboard_details has all '
    'columns (also the scope, sampled, and figures with overridden gold) and retired model versions.';

CREATE VIEW contract_accuracy AS
SELECT
    c.suite, c.model_version, c.contract, c.turns, c.correct, c.accuracy,
    rank() OVER (PARTITION BY c.suite, c.contract ORDER BY c.accuracy DESC) AS rank
FROM latest_accuracy_by_contract AS c LEFT JOIN model_versions AS v ON v.model_version = c.model_version
WHERE NOT coalesce(v.retired, false);

COMMENT ON VIEW contract_accuracy IS 'Accuracy under each contract (exact, expert, bird, …) of the latest evaluation of '
    'every model version in use, from accuracy_by_contract, and its rank among those of the suite under that contract, '
    'from 1; equal ones have the same rank. Only of tracks whose answers are tables; without drawn turns.';

CREATE VIEW trends AS
WITH scopes AS (
    SELECT
        r.suite, r.model_version, r.eval_date,
        arg_max(r.scope, (r.started_at, r.run_id)) FILTER (r.status IN ('complete', 'incomplete')) AS scope
    FROM runs AS r GROUP BY r.suite, r.model_version, r.eval_date
), figures AS (
    SELECT
        s.suite, s.model_version, s.eval_date, s.simulated, coalesce(r.scope, 'full') AS scope, s.n, s.clusters,
        s.mean AS accuracy, s.low, s.high
    FROM statistics AS s LEFT JOIN scopes AS r
        ON r.suite = s.suite AND r.model_version = s.model_version AND r.eval_date = s.eval_date
    -- Drawn turns are never compared so.
    WHERE s.metric = 'correct' AND s.split = 'all' AND NOT contains(coalesce(r.scope, 'full'), '"until":')
), series AS (
    SELECT f.* FROM figures AS f
    QUALIFY f.scope = first_value(f.scope) OVER (
        PARTITION BY f.suite, f.model_version ORDER BY f.scope = 'full' DESC, f.eval_date DESC
    )
), due AS (
    -- Where a date has changed, the tests of those after it have, too.
    SELECT s.* FROM series AS s LEFT JOIN compared_trends AS c
        ON c.suite = s.suite AND c.model_version = s.model_version AND c.eval_date = s.eval_date
        AND c.n IS NOT DISTINCT FROM s.n AND c.clusters IS NOT DISTINCT FROM s.clusters
        AND c.accuracy IS NOT DISTINCT FROM s.accuracy AND c.low IS NOT DISTINCT FROM s.low
        AND c.high IS NOT DISTINCT FROM s.high
    QUALIFY bool_or(c.suite IS NULL) OVER (PARTITION BY s.suite, s.model_version ORDER BY s.eval_date)
)
SELECT c.*, true AS compared
FROM compared_trends AS c
ANTI JOIN due AS d ON d.suite = c.suite AND d.model_version = c.model_version AND d.eval_date = c.eval_date
ANTI JOIN series AS s ON s.suite = c.suite AND s.model_version = c.model_version AND s.scope <> c.scope
UNION ALL BY NAME
SELECT
    d.*, coalesce(v.retired, false) AS retired, g.planned, g.asked, g.answered, g.readable, k.tokens_total, k.usd_total,
    b.open_loss_date, b.open_loss_against, b.open_loss_difference, b.open_loss_p_value, false AS compared
FROM due AS d
LEFT JOIN coverage AS g ON g.suite = d.suite AND g.model_version = d.model_version AND g.eval_date = d.eval_date
LEFT JOIN cost_per_correct_answer AS k
    ON k.suite = d.suite AND k.model_version = d.model_version AND k.eval_date = d.eval_date
LEFT JOIN model_versions AS v ON v.model_version = d.model_version
ASOF LEFT JOIN compared_trends AS b
    ON b.suite = d.suite AND b.model_version = d.model_version AND b.eval_date <= d.eval_date;

COMMENT ON VIEW trends IS 'One row per model version and evaluation date of a suite: the accuracy over time, tested turn by '
    'turn against the previous date and against the first date since the last break. Only evaluations of the scope in '
    'latest_partitions. compared is false where that has not been done yet, since the evaluation, or one before it, is newer '
    'than the comparisons: then all that tests tell is NULL, and open_loss_… are of the last comparison.';

CREATE VIEW compare_details AS
SELECT
    a.suite, a.model_version AS model_a, b.model_version AS model_b, a.case_id, a.turn_index, a.turn_id, a.sample,
    a.question, a.expected, a.correct AS correct_a, b.correct AS correct_b,
    CASE
        WHEN NOT (x.answered AND y.answered) THEN 'unanswered'
        WHEN a.correct = b.correct THEN 'same'
        WHEN a.correct AND NOT b.correct THEN 'broken'
        WHEN b.correct AND NOT a.correct THEN 'fixed'
    END AS change,
    a.answer AS answer_a, b.answer AS answer_b, a.tokens AS tokens_a, b.tokens AS tokens_b,
    x.answered AS answered_a, y.answered AS answered_b
FROM latest_turn_results AS a
JOIN latest_turn_results AS b
    ON a.suite = b.suite AND a.turn_id = b.turn_id AND a.sample = b.sample AND a.model_version <> b.model_version
    AND a.question = b.question AND a.expected IS NOT DISTINCT FROM b.expected
LEFT JOIN meta.answered_turns AS x
    ON x.suite = a.suite AND x.model_version = a.model_version AND x.turn_id = a.turn_id AND x.sample = a.sample
LEFT JOIN meta.answered_turns AS y
    ON y.suite = b.suite AND y.model_version = b.model_version AND y.turn_id = b.turn_id AND y.sample = b.sample;

COMMENT ON VIEW compare_details IS 'Every pair of model versions of a suite, in both orders: the turns scored for both on '
    'their latest dates (not those whose question or gold has changed between). change is unanswered where one gave no '
    'response, else broken (a right, b wrong), fixed (a wrong, b right) or same, NULL where one was not scored. Ask for '
    'one pair. Intervals and p-values: model_comparisons.';

CREATE VIEW compare AS
SELECT
    d.suite, d.model_a, d.model_b, d.turn_id, d.sample, d.question, d.expected, d.correct_a, d.correct_b, d.change,
    d.answer_a, d.answer_b
FROM compare_details AS d;

COMMENT ON VIEW compare IS 'The most important columns of compare_details.';

CREATE VIEW answers AS
SELECT
    r.suite, r.model_version, r.eval_date, r.simulated, r.run_id, r.track, r.turn_id, r.case_id, r.turn_index, r.sample,
    r.question, r.expected, r.answer, r.correct, r.score, t.expected_result, f.result AS returned_result,
    r.error_class, f.error_message, m.label AS failure_mode, f.response, f.reasoning, f.artefact, t.gold,
    f.number AS attempt, f.prompt_hash
FROM turn_results AS r
LEFT JOIN (
    SELECT a.* FROM attempts AS a
    QUALIFY row_number() OVER (
        PARTITION BY a.suite, a.model_version, a.eval_date, a.turn_id, a.sample ORDER BY a.number DESC
    ) = 1
) AS f
    ON f.suite = r.suite AND f.model_version = r.model_version AND f.eval_date = r.eval_date
    AND f.turn_id = r.turn_id AND f.sample = r.sample
LEFT JOIN metrics AS m
    ON m.suite = r.suite AND m.model_version = r.model_version AND m.eval_date = r.eval_date
    AND m.turn_id = r.turn_id AND m.sample = r.sample AND m.metric = 'failure_mode'
LEFT JOIN turns AS t ON t.suite = r.suite AND t.turn_id = r.turn_id;

COMMENT ON VIEW answers IS 'One row per turn and sample of every evaluation and track: the question, the right answer and the '
    'model''s answer, as text and as the result of executing it, with the response of the final attempt. '
    'gold and expected_result are from the suite as it is now.';

CREATE VIEW source_verdicts AS
SELECT
    t.suite, t.model_version, t.eval_date, t.turn_id, t.sample, t.metadata->>'$.provenance.tool' AS source,
    (t.metadata->>'$.source.correct')::BOOLEAN AS source_correct, r.correct, t.metadata->'$.source.scores' AS source_scores,
    r.cluster, r.question, r.expected, r.answer
FROM attempts AS t
JOIN turn_results AS r
    ON r.suite = t.suite AND r.model_version = t.model_version AND r.eval_date = t.eval_date
    AND r.turn_id = t.turn_id AND r.sample = t.sample
WHERE t.number = 0 AND json_exists(t.metadata, '$.source');

COMMENT ON VIEW source_verdicts IS 'Recorded answers with the verdict that the tool they come from gave (source_correct, and '
    'source_scores by the names of its scorers), beside ours (correct). NULL: it gave none, or ours could not be scored.';

CREATE VIEW source_agreement AS
WITH counted AS (
    SELECT
        s.suite, s.model_version, s.eval_date, s.cluster, any_value(s.source) AS source, count(*) AS n,
        count(*) FILTER (s.correct AND s.source_correct) AS both_right,
        count(*) FILTER (s.correct AND NOT s.source_correct) AS only_ours,
        count(*) FILTER (NOT s.correct AND s.source_correct) AS only_theirs,
        count(*) FILTER (NOT s.correct AND NOT s.source_correct) AS both_wrong
    FROM source_verdicts AS s WHERE s.correct IS NOT NULL AND s.source_correct IS NOT NULL
    GROUP BY s.suite, s.model_version, s.eval_date, s.cluster
), whole AS (
    SELECT
        c.suite, c.model_version, c.eval_date, any_value(c.source) AS source, count(*) AS clusters, sum(c.n)::BIGINT AS n,
        sum(c.both_right)::BIGINT AS both_right, sum(c.only_ours)::BIGINT AS only_ours,
        sum(c.only_theirs)::BIGINT AS only_theirs, sum(c.both_wrong)::BIGINT AS both_wrong
    FROM counted AS c GROUP BY c.suite, c.model_version, c.eval_date
), left_out AS (  -- each cluster left out once: the jackknife
    SELECT
        w.suite, w.model_version, w.eval_date, w.both_right - c.both_right AS a, w.only_ours - c.only_ours AS b,
        w.only_theirs - c.only_theirs AS c, w.both_wrong - c.both_wrong AS d
    FROM whole AS w JOIN counted AS c
        ON c.suite = w.suite AND c.model_version = w.model_version AND c.eval_date = w.eval_date
), kappas AS (
    SELECT l.suite, l.model_version, l.eval_date,
        2.0 * (l.a * l.d - l.b * l.c) / nullif((l.a + l.b) * (l.b + l.d) + (l.a + l.c) * (l.c + l.d), 0) AS kappa
    FROM left_out AS l
), spread AS (
    SELECT
        k.suite, k.model_version, k.eval_date,
        -- Unknown if one left out leaves no kappa.
        CASE WHEN count(k.kappa) = count(*) AND count(*) > 1
            THEN sqrt((count(*) - 1) * var_pop(k.kappa)) END AS se
    FROM kappas AS k GROUP BY k.suite, k.model_version, k.eval_date
)
SELECT
    w.suite, w.model_version, w.eval_date, w.source, w.n, w.clusters, w.both_right, w.only_ours, w.only_theirs, w.both_wrong,
    (w.both_right + w.both_wrong) / w.n AS agreement,
    2.0 * (w.both_right * w.both_wrong - w.only_ours * w.only_theirs) / nullif(
        (w.both_right + w.only_ours) * (w.only_ours + w.both_wrong)
        + (w.both_right + w.only_theirs) * (w.only_theirs + w.both_wrong), 0
    ) AS kappa,
    s.se AS kappa_se
FROM whole AS w JOIN spread AS s
    ON s.suite = w.suite AND s.model_version = w.model_version AND s.eval_date = w.eval_date;

COMMENT ON VIEW source_agreement IS 'How far our verdicts agree with those of the tool that recorded answers come from, by '
    'evaluation: counts, the share that agree, and Cohen''s kappa with its standard error (jackknife over the groups of '
    'turns that are not independent). source_verdicts has the answers.';

CREATE VIEW explain_turn AS
WITH parts AS (
    SELECT
        e.turn_id, e.model_version, e.eval_date, 0 AS part, NULL::BIGINT AS sample, NULL::BIGINT AS attempt, 0 AS place,
        'case' AS kind, c.case_id AS name, c.content::VARCHAR AS text, NULL::DOUBLE AS value,
        json_object('suite', c.suite, 'source_file', c.source_file, 'source_line', c.source_line,
            'source_hash', c.source_hash, 'cluster', c.cluster, 'tags', c.tags, 'features', c.features) AS details
    FROM meta.evaluated_turns AS e
    JOIN turns AS q ON q.turn_id = e.turn_id
    JOIN cases AS c ON c.suite = q.suite AND c.case_id = q.case_id
    UNION ALL
    SELECT
        e.turn_id, e.model_version, e.eval_date, 1, NULL, NULL, 0, 'question', q.turn_id, q.question, NULL,
        json_object('turn_index', q.turn_index, 'complexity', q.complexity)
    FROM meta.evaluated_turns AS e JOIN turns AS q ON q.turn_id = e.turn_id
    UNION ALL
    SELECT
        e.turn_id, e.model_version, e.eval_date, 2, NULL, NULL, 0, 'gold', q.turn_id, q.expected, NULL,
        json_object('expected_printed', q.expected_printed, 'gold', q.gold, 'gold_problem', q.gold_problem,
            'expected_result', q.expected_result)
    FROM meta.evaluated_turns AS e JOIN turns AS q ON q.turn_id = e.turn_id
    UNION ALL
    SELECT
        -- Recorded answers that name no provenance are of an older import, whose prompt the model never saw.
        t.turn_id, t.model_version, t.eval_date, 3, t.sample, t.number, 0, 'prompt', t.prompt_hash,
        CASE WHEN v.recorded AND NOT coalesce(json_exists(t.metadata, '$.provenance'), false) THEN 'unknown' ELSE p.text END,
        NULL,
        CASE WHEN v.recorded THEN json_object('eval_date', t.eval_date, 'identity_hash', t.identity_hash,
            'asked_on', coalesce(t.metadata->>'$.provenance.asked_on', 'unknown'),
            'model', coalesce(t.metadata->>'$.provenance.model', 'unknown'),
            'prompt_version', coalesce(t.metadata->>'$.provenance.prompt_version', 'unknown'),
            'history', coalesce(t.metadata->>'$.provenance.history', 'unknown'),
            'sampling', coalesce(t.metadata->'$.provenance.sampling', '"unknown"'::JSON),
            'tool', coalesce(t.metadata->>'$.provenance.tool', 'unknown'))
        ELSE json_object('eval_date', t.eval_date, 'identity_hash', t.identity_hash, 'asked_on', t.asked_on) END
    FROM attempts AS t LEFT JOIN prompts AS p ON p.prompt_hash = t.prompt_hash
    LEFT JOIN model_versions AS v ON v.model_version = t.model_version
    UNION ALL
    SELECT
        t.turn_id, t.model_version, t.eval_date, 3, t.sample, t.number, 1, 'response',
        coalesce(t.call_error, t.stop_reason), t.response, NULL,
        json_object('reasoning', t.reasoning, 'call_error', t.call_error, 'stop_reason', t.stop_reason,
            'input_tokens', t.input_tokens, 'output_tokens', t.output_tokens, 'cache_read_tokens', t.cache_read_tokens,
            'cache_write_tokens', t.cache_write_tokens, 'usd', t.usd, 'latency_ms', t.latency_ms,
            'first_byte_ms', t.first_byte_ms, 'retries', t.retries, 'batch', t.batch, 'simulated', t.simulated,
            'served_model', t.served_model, 'system_fingerprint', t.system_fingerprint, 'metadata', t.metadata)
    FROM attempts AS t
    UNION ALL
    SELECT
        v.turn_id, v.model_version, v.eval_date, 3, v.sample, v.number, 2, 'validation', v.verdict, NULL,
        v.parsed::BIGINT, json_object('checks', v.checks, 'errors', v.errors)
    FROM validation AS v
    UNION ALL
    SELECT
        t.turn_id, t.model_version, t.eval_date, 3, t.sample, t.number, 3, 'outcome',
        coalesce(t.error_class, t.outcome), coalesce(t.error_message, t.result::VARCHAR), NULL,
        json_object('outcome', t.outcome, 'artefact', t.artefact, 'sandbox_tier', t.sandbox_tier)
    FROM attempts AS t
    UNION ALL
    SELECT
        s.turn_id, s.model_version, s.eval_date, 4, s.sample, NULL, 0, 'evidence', s.kind, s.verdict, s.value, s.details
    FROM evidence AS s
    UNION ALL
    SELECT
        j.turn_id, j.model_version, j.eval_date, 4, j.sample, NULL, 1, 'judgement', coalesce(j.error, j.choice),
        j.reason, j.value,
        json_object('generated', j.generated, 'expected', j.expected, 'asked', j.asked, 'cached', j.cached,
            'model', j.model, 'prompt_version', j.prompt_version, 'error', j.error)
    FROM judgements AS j
    UNION ALL
    SELECT
        o.turn_id, o.model_version, o.eval_date, 5, o.sample, NULL, 0, 'answer', o.outcome, o.answer, o.correct::BIGINT,
        json_object('correct', o.correct, 'first_attempt_correct', o.first_attempt_correct, 'score', o.score,
            'attempts', o.attempts, 'tokens', o.tokens, 'usd', o.usd, 'run_id', o.run_id)
    FROM turn_results AS o
    UNION ALL
    SELECT
        s.turn_id, s.model_version, s.eval_date, 6, s.sample, NULL, 0, 'metric', s.metric,
        coalesce(s.error, s.reason, s.label), s.value,
        json_object('label', s.label, 'reason', s.reason, 'error', s.error, 'scorer_version', s.scorer_version,
            'details', s.details)
    FROM metrics AS s
)
SELECT
    p.turn_id, p.model_version, p.eval_date,
    row_number() OVER (
        PARTITION BY p.turn_id, p.model_version, p.eval_date
        ORDER BY p.sample NULLS FIRST, p.part, p.attempt NULLS FIRST, p.place, p.kind, p.name
    ) AS step,
    p.sample, p.attempt, p.kind, p.name, p.text, p.value, p.details
FROM parts AS p;

COMMENT ON VIEW explain_turn IS 'Everything behind each result, in order: case with its source, question, gold; for each '
    'sample the attempts (prompt, response, validation, outcome), evidence, judgement, answer and metrics. Ask for one '
    'turn and model version.';

CREATE VIEW current_reviews AS
SELECT r.* EXCLUDE (is_current) FROM reviews AS r WHERE r.is_current;

COMMENT ON VIEW current_reviews IS 'The reviews that count: the latest of each person on each answer.';

CREATE VIEW evaluations AS
SELECT
    f.id, f.suite, f.model_version, f.eval_date, f.newest, r.begun_at, r.prompt, r.prompt_text, r.settings, f.turns,
    f.accuracy
FROM (
    SELECT
        t.evaluation_id AS id, t.suite, t.model_version, t.eval_date, count(*) AS turns,
        avg(t.correct::BIGINT) AS accuracy, false AS newest
    FROM earlier.turn_results AS t GROUP BY t.evaluation_id, t.suite, t.model_version, t.eval_date
    UNION ALL
    SELECT
        any_value(n.evaluation_id), t.suite, t.model_version, t.eval_date, count(*), avg(t.correct::BIGINT), true
    FROM turn_results AS t LEFT JOIN meta.newest_evaluations AS n
        ON n.suite = t.suite AND n.model_version = t.model_version AND n.eval_date = t.eval_date
    GROUP BY t.suite, t.model_version, t.eval_date
) AS f
LEFT JOIN (
    SELECT
        u.evaluation_id, min(u.started_at) AS begun_at, arg_max(u.prompt, u.started_at) AS prompt,
        arg_max(u.prompt_text, u.started_at) AS prompt_text, arg_max(u.identity, u.started_at) AS settings
    FROM runs AS u WHERE u.evaluation_id IS NOT NULL GROUP BY u.evaluation_id
) AS r ON r.evaluation_id = f.id;

COMMENT ON VIEW evaluations IS 'Every evaluation: its id, whether it is the newest of its date (the one in the other '
    'tables and latest_*; rows of all are in the schema evaluations, those of earlier ones in the schema earlier), when '
    'its first run began (UTC), the version of the prompt and the suite''s own words in it, the settings of the model '
    'version that can change a response, the scored turns and their accuracy. id and what runs tell are NULL where '
    'an older version made it.';
