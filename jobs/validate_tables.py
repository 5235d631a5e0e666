"""Hold every table against what is expected of it: `kafka-segments validate`."""

from kafka_segments.verbs.tell.validate.command import validate

if __name__ == "__main__":
    validate(prog_name="validate_tables.py")
