"""Say whether a backup holds what its cluster held: `kafka-segments backup`."""

from kafka_segments.verbs.copies.backup.command import backup

if __name__ == "__main__":
    backup(prog_name="check_backup.py")
