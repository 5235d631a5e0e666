"""Hold copies of logs against each other: `kafka-segments divergence`."""

from kafka_segments.verbs.copies.divergence.command import divergence

if __name__ == "__main__":
    divergence(prog_name="compare_copies.py")
