"""Decide which segments roll, and what other settings would have given: `kafka-segments roll`."""

from kafka_segments.verbs.judge.roll.command import roll

if __name__ == "__main__":
    roll(prog_name="decide_rolls.py")
