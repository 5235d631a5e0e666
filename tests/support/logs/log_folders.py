"""Logs as they lie in brokers' log directories: copies written there, a log that grows."""

from pathlib import Path

from support.logs.log_copies import LogCopy


def write_copies(folder: Path, copies: dict[str, LogCopy]) -> None:
    """Write one broker's log directory: logs by name, and its checkpoints."""
    marks = []
    for name, copy in copies.items():
        log = folder / name
        log.mkdir(parents=True)
        for index, (base, _) in enumerate(copy.segments):
            (log / f"{base:020d}.log").write_bytes(copy.file(index))
        epochs = "".join(f"{epoch} {start}\n" for epoch, start in copy.epochs)
        (log / "leader-epoch-checkpoint").write_text(f"0\n{len(copy.epochs)}\n{epochs}")
        if copy.high_watermark is not None:
            topic, _, partition = name.rpartition("-")
            marks.append(f"{topic} {partition} {copy.high_watermark}\n")
    checkpoint = f"0\n{len(marks)}\n{''.join(marks)}"
    (folder / "replication-offset-checkpoint").write_text(checkpoint)


def append_batch(log: Path) -> None:
    """Append a copy of the last batch with offsets that go on."""
    data = log.read_bytes()
    position = last = 0
    while position < len(data):
        last, size = position, int.from_bytes(data[position + 8 : position + 12], "big")
        position += 12 + size
    base_offset = int.from_bytes(data[last : last + 8], "big")
    delta = int.from_bytes(data[last + 23 : last + 27], "big")
    log.write_bytes(data + (base_offset + delta + 1).to_bytes(8, "big") + data[last + 8 :])
