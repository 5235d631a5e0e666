"""Build onto a disk that is full, and again with more room, until all fits.

Run as ``-m support.stores.full_disk SOURCE FOLDER`` by who may mount, as in ``unshare -rm``; a line
of output is what a failed build tells. ``FOLDER/built`` is in the end what the disk holds.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from kafka_segments.console.options import describe_failure
from kafka_segments.engine.spark.session import spark_session
from support.spark.driver_process import ROOT, build

_FIRST_KIB = int(os.environ.get("FIRST_KIB", "16"))
_GROWS = float(os.environ.get("GROWS", "4"))


def main() -> None:
    source, folder = map(Path, sys.argv[1:])
    disk = folder / "disk"
    disk.mkdir()
    mounting, kib = "mount", float(_FIRST_KIB)
    with spark_session("full disk", root=ROOT, master="local[2]") as spark:
        while True:
            options = "" if mounting == "mount" else "remount,"
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", f"{options}size={int(kib)}k", "tmpfs", str(disk)],
                check=True,
            )
            try:
                build(spark, source, disk)
            except Exception as error:  # noqa: BLE001  Spark raises many kinds
                print(int(kib), describe_failure(error), flush=True)
                mounting, kib = "remount", kib * _GROWS
            else:
                break
    shutil.copytree(disk, folder / "built")


if __name__ == "__main__":
    main()
