"""Log directories as crashes leave them, and kits made of them in threads of this process."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from kafka_segments.kafka.index.segment.recovery_options import RecoveryOptions
from kafka_segments.kafka.text.checkpoints import LOCK, PARTITION_METADATA, RECOVERY_POINT
from kafka_segments.kafka.text.topic_ids import encode_partition_metadata
from kafka_segments.verbs.change.recovery.kit.fold import FoldSettings
from kafka_segments.verbs.change.recovery.kit.listing import plan_kit
from kafka_segments.verbs.change.recovery.kit.run import KitOptions, read_in_threads, run_kit
from kafka_segments.verbs.change.recovery.kit_manifest import LogKit

NOW_MS = 1_700_003_600_000
EXPIRATION_MS = 86_400_000
METADATA = encode_partition_metadata("AAAAAAAAAAAAAAAAAAAAAQ")
"""Of a log; without it a broker takes a log for a stray one, and a kit refuses it."""

DEFAULTS = RecoveryOptions(is_load=True)


def kit_options(
    out: Path, recovery: RecoveryOptions = DEFAULTS, *, has_digests: bool = False
) -> KitOptions:
    """Return the options of a kit, by Kafka's defaults."""
    settings = FoldSettings(recovery, NOW_MS, EXPIRATION_MS)
    return KitOptions(str(out), settings, has_digests)


def made_kit(
    log_dir: Path | Sequence[Path],
    out: Path,
    recovery: RecoveryOptions = DEFAULTS,
    *,
    has_digests: bool = False,
) -> dict[str, LogKit]:
    """Make a kit of log directories; return what it says of each log by its name."""
    log_dirs = [log_dir] if isinstance(log_dir, Path) else log_dir
    work = plan_kit([str(path) for path in log_dirs], str(out))
    options = kit_options(out, recovery, has_digests=has_digests)
    logs = run_kit(options, work=work, read=read_in_threads(2), made_ms=NOW_MS)
    return {log.log: log for log in logs}


def crashed_log(
    log_dir: Path, segments: Path, *, recovery_point: int = 0, torn: bytes = b""
) -> Path:
    """Put a log into a log directory, without sound index files; return its folder.

    ``segments``: the folder that its .log files come from. ``torn`` is appended to the last one.
    """
    folder = log_dir / segments.name
    folder.mkdir(parents=True)
    for log in sorted(segments.glob("*.log")):
        shutil.copy2(log, folder)
        (folder / log.name).with_suffix(".index").write_bytes(bytes(80))
        (folder / log.name).with_suffix(".timeindex").write_bytes(bytes(12))
    with max(folder.glob("*.log")).open("ab") as stream:
        stream.write(torn)
    (folder / PARTITION_METADATA).write_bytes(METADATA)
    (log_dir / LOCK).touch()
    topic, _, partition = segments.name.rpartition("-")
    lines = ["0", "2", "other 1 7", f"{topic} {partition} {recovery_point}", ""]
    (log_dir / RECOVERY_POINT).write_text("\n".join(lines))
    return folder


def flip(log: Path, at: int) -> None:
    """Flip a bit of a segment; its mtime stays."""
    stat, data = log.stat(), bytearray(log.read_bytes())
    data[at] ^= 1
    log.write_bytes(data)
    os.utime(log, ns=(stat.st_atime_ns, stat.st_mtime_ns))
