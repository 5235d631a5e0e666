"""Account for the bytes of log directories: `kafka-segments disk`."""

from kafka_segments.verbs.find.disk.command import disk

if __name__ == "__main__":
    disk(prog_name="account_disks.py")
