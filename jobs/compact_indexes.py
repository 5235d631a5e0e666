"""Trim, thin and clean index files and tables: `kafka-segments compact`."""

from kafka_segments.verbs.change.compact.command import compact

if __name__ == "__main__":
    compact(prog_name="compact_indexes.py")
