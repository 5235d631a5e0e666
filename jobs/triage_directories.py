"""Say what is wrong with a broker's directories: `kafka-segments triage`."""

from kafka_segments.verbs.find.triage.command import triage

if __name__ == "__main__":
    triage(prog_name="triage_directories.py")
