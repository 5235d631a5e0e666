"""Measure broker latency by topic and hour: `kafka-segments latency`."""

from kafka_segments.verbs.find.latency.command import latency

if __name__ == "__main__":
    latency(prog_name="measure_latency.py")
