-- Parameters of a macro hide columns of the same name: columns are always qualified here.

CREATE MACRO explain_turn(turn_id, model_version, on_date := NULL) AS TABLE
WITH asked AS (
    SELECT max(r.eval_date) AS eval_date
    FROM (
        SELECT a.eval_date FROM attempts AS a WHERE a.turn_id = turn_id AND a.model_version = model_version
        UNION ALL
        SELECT t.eval_date FROM turn_results AS t WHERE t.turn_id = turn_id AND t.model_version = model_version
    ) AS r
    WHERE on_date IS NULL OR r.eval_date = CAST(on_date AS DATE)
), question AS (
    SELECT t.* FROM turns AS t WHERE t.turn_id = turn_id
), tries AS (
    SELECT a.* FROM attempts AS a SEMI JOIN asked USING (eval_date)
    WHERE a.turn_id = turn_id AND a.model_version = model_version
), checked AS (
    SELECT v.* FROM validation AS v SEMI JOIN asked USING (eval_date)
    WHERE v.turn_id = turn_id AND v.model_version = model_version
), shown AS (
    SELECT e.* FROM evidence AS e SEMI JOIN asked USING (eval_date)
    WHERE e.turn_id = turn_id AND e.model_version = model_version
), judged AS (
    SELECT j.* FROM judgements AS j SEMI JOIN asked USING (eval_date)
    WHERE j.turn_id = turn_id AND j.model_version = model_version
), outcome AS (
    SELECT r.* FROM turn_results AS r SEMI JOIN asked USING (eval_date)
    WHERE r.turn_id = turn_id AND r.model_version = model_version
), scores AS (
    SELECT m.* FROM metrics AS m SEMI JOIN asked USING (eval_date)
    WHERE m.turn_id = turn_id AND m.model_version = model_version
), parts AS (
    SELECT
        0 AS part, NULL::BIGINT AS sample, NULL::BIGINT AS attempt, 0 AS place, 'case' AS kind, c.case_id AS name,
        c.content::VARCHAR AS text, NULL::DOUBLE AS value,
        json_object('suite', c.suite, 'source_file', c.source_file, 'source_line', c.source_line,
            'source_hash', c.source_hash, 'cluster', c.cluster, 'tags', c.tags, 'features', c.features) AS details
    FROM cases AS c JOIN question AS q ON c.suite = q.suite AND c.case_id = q.case_id
    UNION ALL
    SELECT
        1, NULL, NULL, 0, 'question', q.turn_id, q.question, NULL,
        json_object('turn_index', q.turn_index, 'complexity', q.complexity)
    FROM question AS q
    UNION ALL
    SELECT
        2, NULL, NULL, 0, 'gold', q.turn_id, q.expected, NULL,
        json_object('expected_printed', q.expected_printed, 'gold', q.gold, 'gold_problem', q.gold_problem)
    FROM question AS q
    UNION ALL
    SELECT
        -- Recorded answers that name no provenance are of an older import, whose prompt the model never saw.
        3, t.sample, t.number, 0, 'prompt', t.prompt_hash,
        CASE WHEN v.recorded AND NOT coalesce(json_exists(t.metadata, '$.provenance'), false) THEN 'unknown' ELSE p.text END, NULL,
        CASE WHEN v.recorded THEN json_object('eval_date', t.eval_date, 'identity_hash', t.identity_hash,
            'asked_on', coalesce(t.metadata->>'$.provenance.asked_on', 'unknown'),
            'model', coalesce(t.metadata->>'$.provenance.model', 'unknown'),
            'prompt_version', coalesce(t.metadata->>'$.provenance.prompt_version', 'unknown'),
            'history', coalesce(t.metadata->>'$.provenance.history', 'unknown'),
            'sampling', coalesce(t.metadata->'$.provenance.sampling', '"unknown"'::JSON),
            'tool', coalesce(t.metadata->>'$.provenance.tool', 'unknown'))
        ELSE json_object('eval_date', t.eval_date, 'identity_hash', t.identity_hash, 'asked_on', t.asked_on) END
    FROM tries AS t LEFT JOIN prompts AS p ON p.prompt_hash = t.prompt_hash
    LEFT JOIN model_versions AS v ON v.model_version = t.model_version
    UNION ALL
    SELECT
        3, t.sample, t.number, 1, 'response', coalesce(t.call_error, t.stop_reason), t.response, NULL,
        json_object('reasoning', t.reasoning, 'call_error', t.call_error, 'stop_reason', t.stop_reason, 'input_tokens', t.input_tokens,
            'output_tokens', t.output_tokens, 'cache_read_tokens', t.cache_read_tokens,
            'cache_write_tokens', t.cache_write_tokens, 'usd', t.usd, 'latency_ms', t.latency_ms,
            'first_byte_ms', t.first_byte_ms, 'retries', t.retries, 'batch', t.batch, 'simulated', t.simulated,
            'served_model', t.served_model, 'system_fingerprint', t.system_fingerprint, 'metadata', t.metadata)
    FROM tries AS t
    UNION ALL
    SELECT
        3, v.sample, v.number, 2, 'validation', v.verdict, NULL, v.parsed::BIGINT,
        json_object('checks', v.checks, 'errors', v.errors)
    FROM checked AS v
    UNION ALL
    SELECT
        3, t.sample, t.number, 3, 'outcome', coalesce(t.error_class, t.outcome),
        coalesce(t.error_message, t.result::VARCHAR), NULL,
        json_object('outcome', t.outcome, 'artefact', t.artefact, 'sandbox_tier', t.sandbox_tier)
    FROM tries AS t
    UNION ALL
    SELECT 4, s.sample, NULL, 0, 'evidence', s.kind, s.verdict, s.value, s.details FROM shown AS s
    UNION ALL
    SELECT
        4, j.sample, NULL, 1, 'judgement', coalesce(j.error, j.choice), j.reason, j.value,
        json_object('generated', j.generated, 'expected', j.expected, 'asked', j.asked, 'cached', j.cached,
            'model', j.model, 'prompt_version', j.prompt_version, 'error', j.error)
    FROM judged AS j
    UNION ALL
    SELECT
        5, o.sample, NULL, 0, 'answer', o.outcome, o.answer, o.correct::BIGINT,
        json_object('correct', o.correct, 'first_attempt_correct', o.first_attempt_correct, 'score', o.score,
            'attempts', o.attempts, 'tokens', o.tokens, 'usd', o.usd)
    FROM outcome AS o
    UNION ALL
    SELECT
        6, s.sample, NULL, 0, 'metric', s.metric, coalesce(s.error, s.reason, s.label), s.value,
        json_object('label', s.label, 'reason', s.reason, 'error', s.error, 'scorer_version', s.scorer_version,
            'details', s.details)
    FROM scores AS s
)
SELECT
    row_number() OVER (
        ORDER BY p.sample NULLS FIRST, p.part, p.attempt NULLS FIRST, p.place, p.kind, p.name
    ) AS step,
    p.sample, p.attempt, p.kind, p.name, p.text, p.value, p.details
FROM parts AS p
ORDER BY step;

COMMENT ON MACRO TABLE explain_turn IS 'explain_turn(turn_id, model_version, on_date := newest): everything behind one '
    'result in order: case with its source, question, gold; for each sample the attempts (prompt, response, '
    'validation, outcome), evidence, judgement, answer and metrics.';

CREATE MACRO leaderboard(suite, with_retired := false) AS TABLE
WITH chosen AS (
    SELECT p.suite, p.model_version, p.eval_date, p.scope, coalesce(v.retired, false) AS retired
    FROM latest_partitions AS p LEFT JOIN model_versions AS v ON v.model_version = p.model_version
    WHERE p.suite = suite AND (with_retired OR NOT coalesce(v.retired, false))
), results AS (
    SELECT
        r.model_version, count(*) AS turns, count(r.correct) AS scored, avg(r.correct::BIGINT) AS accuracy, bool_or(r.simulated) AS simulated,
        -- What one turn does not tell nobody knows of all.
        CASE WHEN bool_and(r.tokens IS NOT NULL) THEN sum(r.tokens)::BIGINT END AS tokens,
        CASE WHEN bool_and(r.usd IS NOT NULL) THEN sum(r.usd) END AS usd
    FROM turn_results AS r SEMI JOIN chosen AS c
        ON r.suite = c.suite AND r.model_version = c.model_version AND r.eval_date = c.eval_date
    GROUP BY r.model_version
), headline AS (
    SELECT s.model_version, s.mean, s.low, s.high
    FROM statistics AS s SEMI JOIN chosen AS c
        ON s.suite = c.suite AND s.model_version = c.model_version AND s.eval_date = c.eval_date
    WHERE s.metric = 'correct' AND s.split = 'all'
), a_turn AS (
    -- What a turn costs: dollars where they are known of all models (stand-ins apart), else tokens.
    SELECT
        r.model_version, r.simulated, r.accuracy,
        CASE WHEN bool_and(r.usd_known) OVER kind THEN r.usd WHEN bool_and(r.tokens_known) OVER kind THEN r.tokens END
            / r.turns AS cost
    FROM (
        SELECT
            t.model_version, bool_or(t.simulated) AS simulated, count(*) AS turns, avg(t.correct::BIGINT) AS accuracy,
            sum(t.usd) AS usd, sum(t.tokens) AS tokens, bool_and(t.usd IS NOT NULL) AS usd_known,
            bool_and(t.tokens IS NOT NULL) AS tokens_known
        FROM turn_results AS t SEMI JOIN chosen AS c
            ON t.suite = c.suite AND t.model_version = c.model_version AND t.eval_date = c.eval_date
        WHERE t.correct IS NOT NULL
        GROUP BY t.model_version
    ) AS r
    WINDOW kind AS (PARTITION BY r.simulated)
), front AS (
    SELECT
        m.model_version,
        CASE WHEN m.cost IS NOT NULL THEN NOT EXISTS (
            SELECT 1 FROM a_turn AS o
            WHERE o.simulated = m.simulated AND o.cost <= m.cost AND o.accuracy >= m.accuracy
                AND (o.cost < m.cost OR o.accuracy > m.accuracy)
        ) END AS on_front
    FROM a_turn AS m
), reached AS (
    SELECT g.model_version, g.planned, g.asked, g.answered, g.readable, g.scored
    FROM coverage AS g SEMI JOIN chosen AS c
        ON g.suite = c.suite AND g.model_version = c.model_version AND g.eval_date = c.eval_date
), golds AS (
    SELECT
        e.model_version, any_value(e.name) FILTER (e.edition = 'scored') AS gold_edition,
        any_value(e.overridden_turns) AS overridden_turns, any_value(e.excluded_turns) AS excluded_turns,
        any_value(e.mean) FILTER (e.edition = 'published') AS accuracy_published
    FROM gold_editions AS e SEMI JOIN chosen AS c
        ON e.suite = c.suite AND e.model_version = c.model_version AND e.eval_date = c.eval_date
    WHERE e.metric = 'correct'
    GROUP BY e.model_version
), cost AS (
    SELECT k.model_version, k.tokens_total, k.usd_total, k.tokens_per_success, k.usd_per_success
    FROM cost_per_correct_answer AS k SEMI JOIN chosen AS c
        ON k.suite = c.suite AND k.model_version = c.model_version AND k.eval_date = c.eval_date
)
SELECT
    c.model_version, c.eval_date, c.scope, coalesce(r.turns, 0) AS turns, coalesce(h.mean, r.accuracy) AS accuracy,
    h.low, h.high, coalesce(k.tokens_total, r.tokens) AS tokens, coalesce(k.usd_total, r.usd) AS usd,
    k.tokens_per_success, k.usd_per_success, f.on_front, coalesce(r.simulated, v.simulated) AS simulated,
    g.planned, g.asked, g.answered, g.readable, coalesce(g.scored, r.scored) AS scored, c.retired,
    o.gold_edition, o.overridden_turns, o.excluded_turns, o.accuracy_published
FROM chosen AS c
LEFT JOIN results AS r ON r.model_version = c.model_version
LEFT JOIN headline AS h ON h.model_version = c.model_version
LEFT JOIN reached AS g ON g.model_version = c.model_version
LEFT JOIN golds AS o ON o.model_version = c.model_version
LEFT JOIN cost AS k ON k.model_version = c.model_version
LEFT JOIN front AS f ON f.model_version = c.model_version
LEFT JOIN model_versions AS v ON v.model_version = c.model_version
ORDER BY accuracy DESC NULLS LAST, k.tokens_per_success NULLS LAST, c.model_version;

COMMENT ON MACRO TABLE leaderboard IS 'leaderboard(suite, with_retired := false): every model version in use '
    '(with_retired: those that no file lists any more too) on its latest date, the most accurate '
    'first, with the 95% interval of its accuracy, what it spent in all and for each successful conversation, and whether '
    'it is on the front of cost and accuracy (stand-ins and models apart), and how many turns were planned, asked, '
    'answered, readable and scored (NULL: not on record); the edition of the gold that accuracy stands for, how many turns '
    'of it are overridden or excluded, and the accuracy without overrides (NULL: there are none).';

CREATE MACRO compare(model_a, model_b, suite) AS TABLE
WITH a AS (
    SELECT r.* FROM latest_turn_results AS r WHERE r.model_version = model_a AND r.suite = suite
), b AS (
    SELECT r.* FROM latest_turn_results AS r WHERE r.model_version = model_b AND r.suite = suite
), answered AS (
    SELECT
        t.model_version, t.turn_id, t.sample,
        bool_or(t.stop_reason IS NOT NULL OR coalesce(t.call_error IN ('refused', 'max_tokens'), false)) AS answered
    FROM latest_attempts AS t WHERE t.model_version IN (model_a, model_b) AND t.suite = suite
    GROUP BY t.model_version, t.turn_id, t.sample
)
SELECT
    a.turn_id, a.sample, a.question, a.expected, a.correct AS correct_a, b.correct AS correct_b,
    CASE
        WHEN NOT (x.answered AND y.answered) THEN 'unanswered'
        WHEN a.correct = b.correct THEN 'same'
        WHEN a.correct AND NOT b.correct THEN 'broken'
        WHEN b.correct AND NOT a.correct THEN 'fixed'
    END AS change,
    a.answer AS answer_a, b.answer AS answer_b, a.tokens AS tokens_a, b.tokens AS tokens_b,
    x.answered AS answered_a, y.answered AS answered_b
FROM a JOIN b ON a.turn_id = b.turn_id AND a.sample = b.sample
    AND a.question = b.question AND a.expected IS NOT DISTINCT FROM b.expected
LEFT JOIN answered AS x ON x.model_version = model_a AND x.turn_id = a.turn_id AND x.sample = a.sample
LEFT JOIN answered AS y ON y.model_version = model_b AND y.turn_id = b.turn_id AND y.sample = b.sample
ORDER BY a.case_id, a.turn_index, a.sample;

COMMENT ON MACRO TABLE compare IS 'compare(model_a, model_b, suite): the turns scored for both on their latest '
    'dates (not those whose question or gold has changed between); change is unanswered where one gave no response, else '
    'broken (a right, b wrong), fixed (a wrong, b right) or same, NULL where one was not scored. Intervals and p-values: model_comparisons.';

CREATE VIEW current_reviews AS
SELECT r.* EXCLUDE (is_current) FROM reviews AS r WHERE r.is_current;

COMMENT ON VIEW current_reviews IS 'The reviews that count: the last word of each person on each answer.';
