"""Say where compacted logs stand with the cleaner: `kafka-segments cleaner`."""

from kafka_segments.verbs.find.cleaner.command import cleaner

if __name__ == "__main__":
    cleaner(prog_name="judge_cleaner.py")
