"""Turn arguments as a notebook gives them into what the command line takes."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka_segments.console.options import clock
from kafka_segments.errors import UsageError
from kafka_segments.kafka.text.moments import parse_point
from kafka_segments.settings import CutConfig, RetentionConfig, Settings, settings_grid

if TYPE_CHECKING:
    from kafka_segments.engine.derived.topic_configs import TopicConfigs
    from kafka_segments.verbs.find.search.log_tables import LogChoice

FilePath = str | PathLike[str]
Moment = datetime | int | str
"""A datetime with a zone, ms since 1970, or a text of the command line, such as ``-2h``."""
Scalar = bool | int | str


class GivenSettings(NamedTuple):
    """Where a call takes the settings of topics and brokers from: its arguments of these names."""

    settings: Mapping[str, Scalar] | None
    conf: FilePath | None
    topic_configs: FilePath | Sequence[FilePath]
    server_properties: FilePath | None

    def configs(self, *, warehouse: str, now_ms: int) -> "TopicConfigs":
        """Return the settings, as the options of the verbs give them.

        Where ``topic_configs`` do not tell of a topic or broker, the settings of its cluster's
        metadata log count as of ``now_ms``, if the tables have it.

        Raises:
            UsageError: a file cannot be read, or a setting is not known.
        """
        from kafka_segments.console.config_options import load_configs  # noqa: PLC0415

        return load_configs(
            Settings.load(path(self.conf), pairs(self.settings)),
            topic_configs=paths(self.topic_configs),
            server_properties=path(self.server_properties),
            warehouse=warehouse,
            now_ms=now_ms,
        )


def grid(
    what_if: Mapping[str, Sequence[Scalar]], of: type[RetentionConfig] | type[CutConfig]
) -> list[dict[str, Any]]:
    """Return all combinations of the values, as the option --what-if has them.

    Raises:
        UsageError: there is none, a key is not known, a value is out of range, or there are too
            many combinations.
    """
    tried = [_pair(key, value) for key, values in what_if.items() for value in values]
    if not tried:
        raise UsageError("what_if needs a key and a value, such as {'retention_ms': [86400000]}")
    return settings_grid(tried, of=of)


def pairs(settings: Mapping[str, Scalar] | None) -> tuple[str, ...]:
    """Return settings as the option --set has them."""
    return tuple(_pair(key, value) for key, value in (settings or {}).items())


def _pair(key: str, value: Scalar) -> str:
    return f"{key}={str(value).lower() if isinstance(value, bool) else value}"


def paths(files: FilePath | Sequence[FilePath]) -> list[Path]:
    """Return the paths of files; one need not be in a list."""
    return [Path(file) for file in ([files] if isinstance(files, str | PathLike) else files)]


def choice(
    topics: str | Sequence[str],
    partitions: int | Sequence[int],
    cluster: str | None,
    broker_id: int | None,
) -> "LogChoice":
    """Return the logs that are asked about; one topic or partition need not be in a list."""
    from kafka_segments.verbs.find.search.log_tables import LogChoice  # noqa: PLC0415

    numbers = (partitions,) if isinstance(partitions, int) else tuple(partitions)
    return LogChoice(names(topics), numbers, cluster, broker_id)


def refuse_below_one(name: str, number: int | None) -> None:
    """Refuse a number below 1; None is none.

    Raises:
        UsageError: it is below 1.
    """
    if number is not None and number < 1:
        raise UsageError(f"{name} is {number}: 1 or more expected")


def names(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return names; one need not be in a list."""
    return (given,) if isinstance(given, str) else tuple(given)


def one_of(name: str, value: str, *choices: str) -> None:
    """Refuse a value that is none of the choices.

    Raises:
        UsageError: it is not one of them.
    """
    if value not in choices:
        raise UsageError(f"{name} is {value!r}: {' or '.join(choices)} expected")


def path(file: FilePath | None) -> Path | None:
    """Return the path of a file, if one was given."""
    return None if file is None else Path(file)


def clock_or(now: Moment | None) -> int:
    """Return the moment that counts as now, in ms since 1970; by default the clock's.

    Raises:
        UsageError: it is no moment.
    """
    now_ms = clock()
    return now_ms if now is None else parse_point("now", text(now), now_ms=now_ms)


def optional_ms(moment: Moment | None, now_ms: int) -> int | None:
    """Return a moment in ms since 1970, if one was given.

    Raises:
        UsageError: it is no moment.
    """
    return None if moment is None else parse_point("moment", text(moment), now_ms=now_ms)


def text(moment: Moment) -> str:
    """Return a moment as the command line takes it."""
    return moment.isoformat() if isinstance(moment, datetime) else str(moment)
