"""Run the command line as ``python -m kafka_segments``."""

from kafka_segments.cli import main

if __name__ == "__main__":
    main()
