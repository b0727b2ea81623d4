SELECT t.day, s.district, count(*) AS trips, sum(t.fare_cents) AS fare_cents
FROM {{ ref('int_trip_fares') }} t
JOIN {{ ref('stg_stations') }} s ON s.station_id = t.start_station
GROUP BY t.day, s.district
