"""Forecast a broker's recovery: `kafka-segments recovery`."""

from kafka_segments.verbs.change.recovery.command import recovery

if __name__ == "__main__":
    recovery(prog_name="plan_recovery.py")
