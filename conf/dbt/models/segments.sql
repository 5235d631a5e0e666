-- The segments that are there, as `kafka-segments sql` shows them: without those that vanished, and
-- those that `validate` set aside.
SELECT *
FROM {{ source('kafka_segments', 'segments') }}
{% if var('set_aside') %}
ANTI JOIN {{ source('kafka_segments', 'quarantined_segments') }}
  USING (cluster, broker_id, log_dir, topic, partition, base_offset)
{% endif %}
WHERE vanished_at IS NULL
