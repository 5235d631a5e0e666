"""Bring old clusters to what Kafka 4 should find: `kafka-segments migrate`."""

from kafka_segments.verbs.change.migrate.command import migrate

if __name__ == "__main__":
    migrate(prog_name="migrate_legacy.py")
