"""Whether a warehouse has the topic that commits lie in, told without Spark."""

from kafka_segments.engine.tables.missing import but_altered, require_names
from kafka_segments.errors import UsageError
from kafka_segments.files.storage.uris import join_uri
from kafka_segments.kafka.text.names import OFFSETS_TOPIC

_MOST_BYTES = 32 * 1024 * 1024


def refuse_without_offsets(warehouse: str, *, cluster: str | None) -> None:
    """Refuse a warehouse that has no segments of ``__consumer_offsets``.

    A large table, or one that only Spark can read, is not looked into: the run itself will say so.

    Raises:
        UsageError: it has none, or none of ``cluster``.
    """
    from kafka_segments.files.delta.rows import read_small_table  # noqa: PLC0415

    segments = read_small_table(
        join_uri(warehouse, "segments"),
        ["cluster", "vanished_at"],
        most_bytes=_MOST_BYTES,
        where=("topic", OFFSETS_TOPIC),
    )
    if segments is None:
        return
    clusters = {row["cluster"] for row in segments if row["vanished_at"] is None}
    if not clusters:
        raise no_offsets(warehouse)
    if cluster is not None:
        require_names(warehouse, f"segments of {OFFSETS_TOPIC} of cluster", (cluster,), clusters)


def no_offsets(warehouse: str) -> UsageError:
    """Make the error of a warehouse without the topic that commits lie in."""
    return UsageError(
        f"{warehouse} has no segments of {OFFSETS_TOPIC}: give `kafka-segments build` the"
        f" log directories of the brokers that hold it{but_altered(warehouse)}"
    )
