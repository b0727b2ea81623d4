SELECT t.member_id, m.name, sum(t.fare_cents - t.refund_cents) AS spent_cents
FROM {{ ref('int_trip_fares') }} t
JOIN {{ source('raw', 'members') }} m USING (member_id)
GROUP BY t.member_id, m.name
