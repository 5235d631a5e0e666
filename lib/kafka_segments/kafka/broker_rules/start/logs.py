"""What a start does with one partition's folder, by the rows of ``rules``."""

from kafka_segments.kafka.broker_rules.start.log_files import FilesOfLog
from kafka_segments.kafka.broker_rules.start.log_records import RecordsOfLog


class LogDecision(FilesOfLog, RecordsOfLog):
    """Decides about one log of a log directory: its files, then its records."""
