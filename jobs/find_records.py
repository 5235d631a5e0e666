"""Find records, and those that cannot be read: `kafka-segments records`."""

from kafka_segments.verbs.find.records.command import records

if __name__ == "__main__":
    records(prog_name="find_records.py")
