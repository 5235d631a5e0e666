"""Settings: file, then environment, then --set; typos refused."""

import os

import pytest

from kafka_segments.errors import UsageError
from kafka_segments.settings import Settings


@pytest.fixture(autouse=True)
def _no_settings_in_the_environment(monkeypatch):
    for name in [name for name in os.environ if name.upper().startswith("KAFKA_SEGMENTS_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def conf(tmp_path):
    def write(text: str):
        file = tmp_path / "conf.toml"
        file.write_text(text, "utf-8")
        return file

    return write


def test_the_defaults_are_the_brokers():
    assert Settings.load(None, []).model_dump() == {
        "producer_id_expiration_ms": 86_400_000,
        "retention_ms": 604_800_000,
        "retention_bytes": -1,
        "cleanup_policy": "delete",
        "file_delete_delay_ms": 60_000,
        "local_retention_ms": -2,
        "local_retention_bytes": -2,
        "remote_storage_enable": False,
        "remote_log_copy_disable": False,
        "log_cleaner_enable": True,
        "index_interval_bytes": 4096,
        "segment_bytes": 1_073_741_824,
        "segment_ms": 604_800_000,
        "segment_index_bytes": 10_485_760,
        "segment_jitter_ms": 0,
        "max_compaction_lag_ms": 2**63 - 1,
        "max_message_bytes": 1_048_588,
        "message_timestamp_type": "CreateTime",
        "message_timestamp_before_max_ms": 2**63 - 1,
        "message_timestamp_after_max_ms": 3_600_000,
        "message_timestamp_difference_max_ms": 2**63 - 1,
        "topics": {},
    }


def test_the_environment_wins_over_the_file(conf, monkeypatch):
    monkeypatch.setenv("KAFKA_SEGMENTS_RETENTION_MS", "2")

    settings = Settings.load(conf("retention_ms = 1\nretention_bytes = 10\n"), [])

    assert (settings.retention_ms, settings.retention_bytes) == (2, 10)


def test_set_wins_over_the_environment_and_the_file(conf, monkeypatch):
    monkeypatch.setenv("KAFKA_SEGMENTS_RETENTION_MS", "2")

    settings = Settings.load(conf("retention_ms = 1\n"), ["retention_ms=3"])

    assert settings.retention_ms == 3


def test_a_set_that_is_repeated_with_another_value_is_refused_and_a_settings_own_option_wins():
    with pytest.raises(UsageError, match="--set gives retention_ms twice, 3 and 4: leave only"):
        Settings.load(None, ["retention_ms=3", "retention.ms=4"])

    settings = Settings.load(None, ["retention_ms=3", "retention.ms=3"], segment_bytes=None)
    assert (settings.retention_ms, settings.segment_bytes) == (3, 1 << 30)
    assert Settings.load(None, ["retention_ms=3"], retention_ms=4).retention_ms == 4


def test_set_takes_kafkas_own_keys():
    settings = Settings.load(None, [" retention.ms = 3 ", "cleanup.policy=compact,delete"])

    assert (settings.retention_ms, settings.cleanup_policy) == (3, "compact,delete")


def test_a_value_may_hold_an_equals_sign():
    with pytest.raises(UsageError, match="cleanup_policy is 'a=b'"):
        Settings.load(None, ["cleanup_policy=a=b"])


def test_settings_cannot_be_changed():
    settings = Settings.load(None, [])

    with pytest.raises(ValueError, match="frozen"):
        settings.retention_ms = 1


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("retention_msec=1", "unknown setting retention_msec"),
        ("retention_ms", "--set retention_ms: key=value expected"),
        ("=1", "unknown setting "),
        ("retention_ms=a week", "retention_ms is 'a week': not a number"),
        ("retention_ms=-2", "retention_ms is -2: Input should be greater than or equal to -1"),
        (
            "index_interval_bytes=2147483648",
            "index_interval_bytes is 2147483648: Input should be less than or equal to 2147483647",
        ),
        (
            "segment_index_bytes=3",
            "segment_index_bytes is 3: Input should be greater than or equal to 4",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(pair, message):
    with pytest.raises(UsageError) as raised:
        Settings.load(None, [pair])

    assert str(raised.value) == message


def test_every_problem_is_named():
    with pytest.raises(UsageError) as raised:
        Settings.load(None, ["retention_mss=1", "retention_ms=-5"])

    assert str(raised.value) == (
        "retention_ms is -5: Input should be greater than or equal to -1;"
        " unknown setting retention_mss"
    )


def test_a_typo_in_the_file_is_refused(conf):
    with pytest.raises(UsageError, match=r"^unknown setting retention_mss$"):
        Settings.load(conf("retention_mss = 1\n"), [])


def test_a_bad_value_in_the_environment_is_refused(monkeypatch):
    monkeypatch.setenv("KAFKA_SEGMENTS_RETENTION_BYTES", "1 GB")

    with pytest.raises(UsageError, match=r"^retention_bytes is '1 GB': "):
        Settings.load(None, [])


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("KAFKA_SEGMENTS_RETENTION_MSS", ": KAFKA_SEGMENTS_RETENTION_MS?"),
        ("kafka_segments_retention.ms", ": KAFKA_SEGMENTS_RETENTION_MS?"),
        ("KAFKA_SEGMENTS_XYZ", ""),
    ],
)
def test_a_typo_in_the_environment_is_refused(name, hint, monkeypatch):
    monkeypatch.setenv(name, "1")

    with pytest.raises(UsageError) as raised:
        Settings.load(None, [])

    assert str(raised.value) == f"unknown setting {name} in the environment{hint}"


def test_a_file_that_is_no_toml_is_refused_by_name(conf):
    file = conf("retention_ms: 1\n")

    with pytest.raises(UsageError) as raised:
        Settings.load(file, [])

    assert str(raised.value) == (
        f"{file}: Expected '=' after a key in a key/value pair (at line 1, column 13)"
    )


def test_a_file_that_is_no_text_is_refused_by_name(tmp_path):
    file = tmp_path / "conf.toml"
    file.write_bytes(b"\xff\xfe")

    with pytest.raises(UsageError) as raised:
        Settings.load(file, [])

    assert str(raised.value).startswith(f"{file}: 'utf-8' codec can't decode byte 0xff")


def test_a_file_that_is_not_there_is_refused_by_name(tmp_path):
    with pytest.raises(UsageError) as raised:
        Settings.load(tmp_path / "gone.toml", [])

    assert "gone.toml: [Errno 2] No such file or directory" in str(raised.value)
