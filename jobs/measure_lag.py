"""Measure the lag of consumer groups: `kafka-segments lag`."""

from kafka_segments.verbs.find.lag.command import lag

if __name__ == "__main__":
    lag(prog_name="measure_lag.py")
