SELECT station_id, name, district, valid_from, valid_to FROM {{ source('raw', 'stations') }}
