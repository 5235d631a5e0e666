"""Settings: Kafka's own keys with ``_`` for ``.``, from a TOML file, the environment, --set."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from kafka_segments.errors import UsageError


class Settings(BaseSettings):
    """The settings of a log that rebuilding and retention depend on; defaults are the broker's."""

    model_config = SettingsConfigDict(env_prefix="KAFKA_SEGMENTS_", extra="forbid", frozen=True)

    index_interval_bytes: int = Field(default=4096, ge=0, le=2**31 - 1)
    segment_index_bytes: int = Field(default=10 * 1024 * 1024, ge=4, le=2**31 - 1)
    retention_ms: int = Field(default=604_800_000, ge=-1)
    retention_bytes: int = Field(default=-1, ge=-1)
    cleanup_policy: str = Field(
        default="delete", pattern=r"^(delete|compact|compact,delete|delete,compact)?$"
    )

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
    def load(cls, file: Path | None, pairs: Sequence[str]) -> Self:
        """Read a TOML file, then the environment over it, then ``key=value`` pairs over both.

        Raises:
            UsageError: the file is no TOML, a key is unknown, a value is out of range.
        """
        try:
            from_file = {} if file is None else tomllib.loads(file.read_text("utf-8"))
            from_environment = EnvSettingsSource(cls)()
            return cls.model_validate({**from_file, **from_environment, **_parse_pairs(pairs)})
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise UsageError(f"{file}: {error}") from None
        except ValidationError as error:
            raise UsageError("; ".join(map(_one_line, error.errors()))) from None


def _parse_pairs(pairs: Sequence[str]) -> dict[str, str]:
    parsed = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"--set {pair}: key=value expected")
        parsed[key.strip().replace(".", "_")] = value.strip()
    return parsed


def _one_line(problem: Any) -> str:
    key = ".".join(map(str, problem["loc"]))
    if problem["type"] == "extra_forbidden":
        return f"unknown setting {key}"
    return f"{key} is {problem['input']!r}: {problem['msg']}"
