"""Apply a kit to a log directory on a disk that is full, and again with more room, until it fits.

Run as ``full_disk_kit.py LOG_DIR FOLDER`` by who may mount, as in ``unshare -rm``. Each line of
output is what a step says of the log; after each that failed the log directory must be as it was.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from kafka_segments.verbs.change.recovery.apply.run import ApplyOptions, run_apply, run_rollback
from support.verbs.killed_kit import assert_same, state_of
from support.verbs.recovery_kits import made_kit


def _mount(disk: Path, kib: int, options: str = "") -> None:
    size = f"{options}size={kib}k"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(disk)], check=True)


def main() -> None:
    first, folder = map(Path, sys.argv[1:])
    disk, kit = folder / "disk", folder / "kit"
    disk.mkdir()
    _mount(disk, 100_000)
    shutil.copytree(first, disk / "logs")
    found = os.statvfs(disk)
    kib = (found.f_blocks - found.f_bfree) * found.f_frsize // 1024
    _mount(disk, kib, "remount,")
    made_kit(disk / "logs", kit)
    expected = state_of(disk / "logs")
    options = ApplyOptions(kit, execute=True)
    while True:
        (step,) = run_apply(options)
        print(step.status, step.message, flush=True)
        if step.status == "done":
            break
        assert_same(state_of(disk / "logs"), expected)
        kib += 40
        _mount(disk, kib, "remount,")
    (back,) = run_rollback(options)
    print(back.status, flush=True)
    assert_same(state_of(disk / "logs"), expected)


if __name__ == "__main__":
    main()
