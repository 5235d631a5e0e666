"""Write one HTML page about a warehouse: `kafka-segments report`."""

from kafka_segments.verbs.tell.report.command import report

if __name__ == "__main__":
    report(prog_name="report_segments.py")
