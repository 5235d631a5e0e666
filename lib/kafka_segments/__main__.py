"""Run the command line: ``kafka-segments``, or ``python -m kafka_segments``."""

import os
import signal
import sys
import threading
from types import FrameType

from kafka_segments.console.lines import say
from kafka_segments.errors import TerminatedError

_PATIENCE_SECONDS = 20  # Kubernetes kills after 30


def main() -> None:
    """Run the command line; Ctrl-C and SIGTERM leave no traceback, whenever they come.

    As process 1 of a container no signal ends a program that does not handle it.
    """
    signal.signal(signal.SIGTERM, _terminate)
    if sys.stdout is None:  # Python's name for one that is closed
        say("kafka-segments: stdout is closed: give it a file, or /dev/null")
        sys.exit(2)
    try:
        from kafka_segments.cli import cli  # noqa: PLC0415  Ctrl-C may come while it is imported

        cli()
    except TerminatedError:
        say("kafka-segments: ended by SIGTERM before it had begun")
        sys.exit(128 + signal.SIGTERM)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is left is the end of Spark's JVM


def _terminate(number: int, frame: FrameType | None) -> None:
    """End what runs; where Python loses the exception, or the JVM does not stop, end all the same.

    The JVM ends when this process has ended, and removes what is temporary.
    """
    del number, frame
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    end = threading.Timer(_PATIENCE_SECONDS, os._exit, (128 + signal.SIGTERM,))
    end.daemon = True
    end.start()
    raise TerminatedError


if __name__ == "__main__":
    main()
