"""Judge the timestamps of every topic, partition and producer: `kafka-segments forensics`."""

from kafka_segments.verbs.find.forensics.command import forensics

if __name__ == "__main__":
    forensics(prog_name="judge_timestamps.py")
