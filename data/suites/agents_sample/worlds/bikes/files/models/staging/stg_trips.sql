SELECT trip_id, member_id, start_station, started_at, ended_at, CAST(started_at AS DATE) AS day,
       date_diff('minute', started_at, ended_at) AS minutes
FROM {{ source('raw', 'trips') }}
WHERE NOT is_test
