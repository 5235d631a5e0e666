"""Scan segments, write their index files, merge the tables: `kafka-segments build`."""

from kafka_segments.verbs.scan.command import build

if __name__ == "__main__":
    build(prog_name="build_indexes.py")
