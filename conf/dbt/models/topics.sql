-- What each topic holds, the most bytes first.
SELECT
  topic,
  count(*) AS segments,
  sum(size_bytes) AS size_bytes,
  count(damage) AS damaged_segments
FROM {{ ref('segments') }}
GROUP BY topic
ORDER BY size_bytes DESC, topic
