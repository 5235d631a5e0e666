"""A table of index sizes by granularity, in Markdown."""

from collections.abc import Sequence

from kafka_segments.broker_rules.count_entries import count_entries
from kafka_segments.broker_rules.index_sizes import sizes_by_granularity

_HEADER = (
    "granularity",
    "bytes an entry",
    "entries a segment",
    "bytes a segment",
    "per 1 GiB of log",
    "3,500 such partitions",
)
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def table(sources: Sequence[str]) -> str:
    """Measure the segments under the sources; gives the table, a line a granularity."""
    lines = [_HEADER, ("---",) + ("--:",) * (len(_HEADER) - 1)]
    lines += [
        (
            size.granularity,
            str(size.entry_bytes),
            f"{size.entries_per_segment:.1f}",
            _amount(size.bytes_per_segment),
            _amount(size.bytes_per_gib),
            _amount(size.bytes_of_partitions),
        )
        for size in sizes_by_granularity(list(count_entries(sources)))
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _amount(size_bytes: float) -> str:
    """Write a size with two decimals, in the unit that keeps it below 1024."""
    unit = 0
    while size_bytes >= 1024 and unit < len(_UNITS) - 1:
        size_bytes /= 1024
        unit += 1
    return f"{size_bytes:.0f} B" if unit == 0 else f"{size_bytes:.2f} {_UNITS[unit]}"
