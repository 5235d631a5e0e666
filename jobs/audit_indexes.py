"""Compare the index files found beside segments with the rebuilt ones: `kafka-segments audit`."""

from kafka_segments.verbs.judge.audit.command import audit

if __name__ == "__main__":
    audit(prog_name="audit_indexes.py")
