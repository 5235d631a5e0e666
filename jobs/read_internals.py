"""Read the cluster's own topics into tables: `kafka-segments internals`."""

from kafka_segments.verbs.find.internals.command import internals

if __name__ == "__main__":
    internals(prog_name="read_internals.py")
