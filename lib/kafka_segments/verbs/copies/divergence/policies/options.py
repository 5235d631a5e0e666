"""The options that tell of topics' cleanup policies."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kafka_segments.console.config_options import load_configs
from kafka_segments.console.lines import say
from kafka_segments.console.options import load_settings
from kafka_segments.console.strict_options import complete_folder
from kafka_segments.files.storage.typed_uris import absolute_uri

if TYPE_CHECKING:
    from kafka_segments.verbs.copies.divergence.policies.cleanup import CleanupPolicies

history_option = click.option(
    "--warehouse",
    metavar="URI",
    shell_complete=complete_folder,
    help="Tables with the history of the cluster's metadata log, for the topics' cleanup policies;"
    " nothing is kept there.",
)


def load_policies(
    *,
    topic_configs: Sequence[Path],
    server_properties: Path | None,
    warehouse: str | None,
    now_ms: int,
) -> "CleanupPolicies":
    """Read what ``config_file_options`` and the warehouse, a URI, tell of cleanup policies.

    Raises:
        UsageError: as ``load_configs``.
    """
    from kafka_segments.engine.derived.metadata_in_tables import NoMetadataError  # noqa: PLC0415
    from kafka_segments.verbs.copies.divergence.policies.cleanup import CleanupPolicies  # noqa: PLC0415

    root = None if warehouse is None else absolute_uri(warehouse)
    configs = load_configs(
        load_settings(None, ()),
        topic_configs=topic_configs,
        server_properties=server_properties,
        warehouse=root,
        now_ms=now_ms,
    )
    try:
        return CleanupPolicies.load(configs, root, now_ms)
    except NoMetadataError as error:
        say(f"{root}: {error}: cleanup policies are not taken from there; give --topic-configs")
        return CleanupPolicies.load(configs, None, now_ms)
