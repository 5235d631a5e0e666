"""Decide what retention deletes, and why the rest stays: `kafka-segments retention`."""

from kafka_segments.verbs.judge.retention.command import retention

if __name__ == "__main__":
    retention(prog_name="decide_retention.py")
