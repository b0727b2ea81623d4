SELECT t.*, f.fare_cents, f.refund_cents
FROM {{ ref('stg_trips') }} t
JOIN {{ ref('stg_fares') }} f USING (trip_id)
