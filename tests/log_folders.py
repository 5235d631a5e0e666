"""Copies of logs written as brokers' log directories."""

from pathlib import Path

from log_copies import LogCopy


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
