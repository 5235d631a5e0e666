"""Run the command line: ``kafka-segments``, or ``python -m kafka_segments``."""

import signal
import sys


def main() -> None:
    """Run the command line; Ctrl-C leaves no traceback, whenever it comes."""
    try:
        from kafka_segments.cli import cli  # noqa: PLC0415  Ctrl-C may come while it is imported

        cli()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is left is the end of Spark's JVM


if __name__ == "__main__":
    main()
