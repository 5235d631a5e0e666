"""Fetch the JARs that an installed package needs besides Spark's own.

python -m kafka_segments.jars [FOLDER] [--s3]: into the user's cache folder, where a command does
it by itself, or into a folder that is carried to a machine without a network. A checkout has
`make setup` and `make jars-s3` for it.
"""

import argparse
import logging
import sys
from pathlib import Path

from kafka_segments.engine.spark.jars import DELTA, S3, VARIABLE, cached_folder, has_jars
from kafka_segments.engine.spark.jars_fetch import fetch_jars
from kafka_segments.errors import KafkaSegmentsError


def main() -> int:
    """Fetch what is not there yet; say where it lies, or why it could not be fetched."""
    parser = argparse.ArgumentParser(
        prog="python -m kafka_segments.jars", description="Fetch Delta's JARs for Spark."
    )
    parser.add_argument(
        "folder", nargs="?", type=Path, help=f"for {VARIABLE}; default: the user's cache folder"
    )
    parser.add_argument("--s3", action="store_true", help="those for tables on S3, too, by Maven")
    parser.add_argument("--verbose", action="store_true", help="what Maven and Ivy said on failure")
    asked = parser.parse_args()
    logging.basicConfig(level=logging.INFO if asked.verbose else logging.WARNING)
    for kind in (DELTA, S3) if asked.s3 else (DELTA,):
        folder = cached_folder(kind) if asked.folder is None else asked.folder.absolute() / kind
        if folder is None:
            parser.error("there is no home folder: name a folder")
        try:
            if not has_jars(kind, folder):
                fetch_jars(kind, folder)
        except KafkaSegmentsError as error:
            sys.stderr.write(f"kafka-segments: {error}\n")
            return 3
        sys.stdout.write(f"{folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
