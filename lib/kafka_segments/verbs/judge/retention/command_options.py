"""Options of the verbs that decide as retention does."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kafka_segments.console.config_options import config_file_options, load_configs
from kafka_segments.console.options import (
    BUILT_TABLES,
    kafka_version_option,
    load_settings,
    shared_options,
)
from kafka_segments.errors import CorruptTextError, UsageError
from kafka_segments.files.storage.typed_uris import absolute_uri

if TYPE_CHECKING:
    from kafka_segments.verbs.judge.retention.run import RetentionOptions

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def decision_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that every retention decision takes."""
    of_release = kafka_version_option("The release whose rules hold, 0.8 or later")
    command = of_release(shared_options(command, warehouse=BUILT_TABLES))
    command = click.option(
        "--remote-offsets",
        type=_FILE,
        metavar="FILE",
        help="What `kafka-get-offsets --time latest-tiered` printed, for tiered topics.",
    )(command)
    return config_file_options(command)


def retention_options(
    *,
    warehouse: str,
    conf: Path | None,
    pairs: tuple[str, ...],
    now_ms: int,
    topic_configs: Sequence[Path],
    server_properties: Path | None,
    remote_offsets: Path | None,
    kafka_version: str,
    topics: tuple[str, ...] = (),
    **_: Any,
) -> "RetentionOptions":
    """Read what ``decision_options`` were given into ``RetentionOptions``.

    Raises:
        UsageError: a file that cannot be read, or a setting or release that is not known.
    """
    from kafka_segments.kafka.tier.tiered_offsets import parse_tiered_offsets  # noqa: PLC0415
    from kafka_segments.verbs.judge.retention.decide.rules import RetentionRules  # noqa: PLC0415
    from kafka_segments.verbs.judge.retention.run import RetentionOptions  # noqa: PLC0415

    offsets = []
    if remote_offsets is not None:
        try:
            offsets = parse_tiered_offsets(str(remote_offsets), remote_offsets.read_text("utf-8"))
        except CorruptTextError as error:
            raise UsageError(str(error)) from None
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{remote_offsets}: {error}") from None
    return RetentionOptions(
        configs=load_configs(
            load_settings(conf, pairs),
            topic_configs=topic_configs,
            server_properties=server_properties,
            warehouse=absolute_uri(warehouse),
            now_ms=now_ms,
            decide=True,
        ),
        rules=RetentionRules.of(kafka_version),
        now_ms=now_ms,
        remote_offsets=tuple(offsets),
        topics=topics,
    )
