"""Settings: Kafka's own keys with ``_`` for ``.``, from a TOML file, the environment, --set."""

import difflib
import itertools
import math
import os
import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from kafka_segments.errors import UsageError

_ENVIRONMENT = "KAFKA_SEGMENTS_"
_OTHERS = ("CLASS_ARCHIVE", "JARS")  # variables of ours that are no settings of a log
_MOST_COMBINATIONS = 1000
_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)


def _number(value: Any) -> Any:
    """Read a number's text as Kafka does: white space around it, a sign, no underscores."""
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value.strip()):
            raise ValueError("not a number")
        return int(value)
    return value


def _policy(value: str) -> str:
    """Read a list as Kafka does, and write it in one way: sorted, without repeats."""
    names = re.split(r"\s*,\s*", value.strip()) if value.strip() else []
    if not set(names) <= {"compact", "delete"}:
        raise ValueError("compact, delete, both with a comma, or nothing expected")
    return ",".join(sorted(set(names)))


def _boolean(value: Any) -> Any:
    if isinstance(value, str):
        if value.strip().lower() not in ("true", "false"):
            raise ValueError("true or false expected")
        return value.strip().lower() == "true"
    return value


Long = Annotated[int, BeforeValidator(_number), Field(ge=-(2**63), le=2**63 - 1)]
Policy = Annotated[str, AfterValidator(_policy)]
Boolean = Annotated[bool, BeforeValidator(_boolean)]


class RetentionConfig(BaseModel):
    """The configuration of a topic that retention depends on; defaults are Kafka's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    retention_ms: Long = Field(default=604_800_000, ge=-1)
    retention_bytes: Long = -1
    cleanup_policy: Policy = "delete"
    file_delete_delay_ms: Long = Field(default=60_000, ge=0)
    local_retention_ms: Long = Field(default=-2, ge=-2)
    local_retention_bytes: Long = Field(default=-2, ge=-2)
    remote_storage_enable: Boolean = False
    remote_log_copy_disable: Boolean = False
    log_cleaner_enable: Boolean = True  # of a broker, never of a topic


class CutConfig(BaseModel):
    """The configuration that a log is cut into segments by; defaults are Kafka's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    segment_bytes: Long = Field(default=1 << 30, ge=14, le=2**31 - 1)
    segment_ms: Long = Field(default=604_800_000, ge=1)
    index_interval_bytes: Long = Field(default=4096, ge=0, le=2**31 - 1)


class TopicConfig(RetentionConfig, CutConfig):
    """The configuration of a topic; defaults are Kafka's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    segment_index_bytes: Long = Field(default=10 * 1024 * 1024, ge=4, le=2**31 - 1)
    segment_jitter_ms: Long = Field(default=0, ge=0)
    max_compaction_lag_ms: Long = Field(default=2**63 - 1, ge=1)
    message_timestamp_type: Literal["CreateTime", "LogAppendTime"] = "CreateTime"
    max_message_bytes: Long = Field(default=1_048_588, ge=0, le=2**31 - 1)


class Settings(TopicConfig, BaseSettings):
    """The settings of a log that the commands depend on; ``topics`` holds those of one topic."""

    model_config = SettingsConfigDict(env_prefix=_ENVIRONMENT, extra="forbid", frozen=True)

    producer_id_expiration_ms: int = Field(default=86_400_000, ge=1, le=2**31 - 1)
    message_timestamp_before_max_ms: Long = Field(default=2**63 - 1, ge=0)
    message_timestamp_after_max_ms: Long = Field(default=3_600_000, ge=0)
    message_timestamp_difference_max_ms: Long = Field(default=2**63 - 1, ge=0)
    topics: dict[str, TopicConfig] = Field(default_factory=dict)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take what ``load`` gives, and nothing else: it knows which source wins."""
        return (init_settings,)

    @classmethod
    def load(cls, file: Path | None, pairs: Sequence[str], **flags: int | None) -> Self:
        """Read a TOML file, then the environment over it, then ``key=value`` pairs over both.

        ``flags``: values of a setting's own option, over all; None: not given.

        Raises:
            UsageError: the file is no TOML, a key is unknown, a value is out of range, or a key
                has two values in ``pairs``.
        """
        _refuse_unknown_variables(cls.model_fields)
        try:
            from_file = {} if file is None else tomllib.loads(file.read_text("utf-8"))
            from_environment = EnvSettingsSource(cls)()
            given = {key: value for key, value in flags.items() if value is not None}
            values = {**from_file, **from_environment, **_parse_pairs(pairs), **given}
            return cls.model_validate(values)
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise UsageError(f"{file}: {error}") from None
        except ValidationError as error:
            raise UsageError("; ".join(map(describe_problem, error.errors()))) from None


def _refuse_unknown_variables(settings: Iterable[str]) -> None:
    known = [*(name.upper() for name in settings), *_OTHERS]
    for variable in os.environ:
        name = variable.upper().removeprefix(_ENVIRONMENT)
        if variable.upper().startswith(_ENVIRONMENT) and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f": {_ENVIRONMENT}{near[0]}?" if near else ""
            raise UsageError(f"unknown setting {variable} in the environment{hint}")


def _parse_pairs(pairs: Sequence[str], option: str = "--set") -> dict[str, str]:
    parsed: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"{option} {pair}: key=value expected")
        name, value = key.strip().replace(".", "_"), value.strip()
        if parsed.setdefault(name, value) != value:
            raise UsageError(
                f"{option} gives {name} twice, {parsed[name]} and {value}: leave only the one"
                " that is meant"
            )
    return parsed


def describe_problem(problem: Any) -> str:
    """Return in words in one line what pydantic found."""
    key = ".".join(map(str, problem["loc"]))
    if problem["type"] == "extra_forbidden":
        return f"unknown setting {key}"
    return f"{key} is {problem['input']!r}: {problem['msg'].removeprefix('Value error, ')}"


def settings_grid(
    pairs: Sequence[str], *, of: type[BaseModel] = RetentionConfig
) -> list[dict[str, Any]]:
    """Return all combinations of ``key=value,value``; a cleanup.policy keeps its comma.

    Raises:
        UsageError: a key that ``of`` does not have, a value out of range, too many combinations.
    """
    values: dict[str, list[Any]] = {}
    for pair in pairs:
        ((key, text),) = _parse_pairs([pair], "--what-if").items()
        for value in [text] if key == "cleanup_policy" else text.split(","):
            try:
                checked = of.model_validate({key: value}).model_dump(exclude_unset=True)
            except ValidationError as error:
                raise UsageError("; ".join(map(describe_problem, error.errors()))) from None
            tried = values.setdefault(key, [])
            if checked[key] not in tried:  # else its rows would be counted twice
                tried.append(checked[key])
    count = math.prod(map(len, values.values()))
    if count > _MOST_COMBINATIONS:
        raise UsageError(f"--what-if: {count} combinations, at most {_MOST_COMBINATIONS}")
    rows = itertools.product(*values.values()) if values else []
    return [dict(zip(values, row, strict=True)) for row in rows]
