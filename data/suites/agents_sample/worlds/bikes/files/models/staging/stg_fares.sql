SELECT trip_id,
       sum(amount_cents) FILTER (WHERE kind = 'fare') AS fare_cents,
       coalesce(sum(amount_cents) FILTER (WHERE kind = 'refund'), 0) AS refund_cents
FROM {{ source('raw', 'fares') }}
GROUP BY trip_id
