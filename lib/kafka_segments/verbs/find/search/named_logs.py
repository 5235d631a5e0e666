"""Whether the tables have the topics, partitions and clusters that a question names."""

from collections.abc import Callable, Iterable
from typing import Any

from kafka_segments.engine.derived.logs_in_tables import KnownPartition, partitions_known
from kafka_segments.engine.tables.missing import require_names
from kafka_segments.verbs.find.search.log_tables import LogChoice

_NAMES: tuple[tuple[str, Callable[[KnownPartition], str]], ...] = (
    ("logs of cluster", lambda log: log.cluster),
    ("logs of broker", lambda log: str(log.broker_id)),
    ("segments of topic", lambda log: log.topic),
    ("segments of partition", lambda log: str(log.partition)),
)


def chosen_logs(warehouse: str, **choice: Any) -> LogChoice:
    """Return the choice of logs that a question names.

    Raises:
        UsageError: as ``refuse_absent``.
    """
    chosen = LogChoice(**choice)
    refuse_absent(warehouse, chosen)
    return chosen


def refuse_absent(warehouse: str, chosen: LogChoice, *, also: Iterable[str] = ()) -> None:
    """Refuse a choice that names what the tables have no segments of.

    A table that is too large to be read without Spark is not looked into. ``also``: topics that may
    be asked for without a segment.

    Raises:
        UsageError: with the nearest names that the tables have.
    """
    logs, spared = partitions_known(warehouse), set(also)
    if logs is None:
        return
    is_spared = bool(spared.intersection(chosen.topics))
    asked = (
        () if chosen.cluster is None else (chosen.cluster,),
        () if chosen.broker_id is None else (str(chosen.broker_id),),
        tuple(topic for topic in chosen.topics if topic not in spared),
        () if is_spared else tuple(map(str, chosen.partitions)),
    )
    for (what, name_of), names in zip(_NAMES, asked, strict=True):
        require_names(warehouse, what, names, map(name_of, logs))
        if names:
            logs = {log for log in logs if name_of(log) in names}
