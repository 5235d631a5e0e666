"""Errors cross from worker to driver by pickle: nothing of them may get lost."""

import inspect
import pickle

import pytest

from kafka_segments import errors

EVERY_ERROR = [
    errors.KafkaSegmentsError("something is wrong"),
    errors.UsageError("no --source given"),
    errors.OutageError("s3://logs", "AWS Error SLOW_DOWN"),
    errors.BrokenTableError("table /wh/segments is broken: its newest commit has 0 bytes"),
    errors.SourceError("/data", "no such folder"),
    errors.OtherFileError(61, "last offset", 7, 3),
    errors.NoFolderError("/data", "no such folder"),
    errors.VanishedError("/data", 9, 10, "segments", 50),
    errors.FileChangedError(100, 200),
    errors.FileReplacedError(100, 1048576),
    errors.UnreadableObjectError("no chunk 3 of 7"),
    errors.CorruptIndexError("length is 25 bytes, no multiple of 8"),
    errors.CorruptTextError("meta.properties", "no version"),
    errors.CorruptMessageError("TopicRecord.name", "is cut off, 2 bytes are left", 9),
    errors.OffsetOverflowError(2**31 + 7, 7),
    errors.OffsetGoesBackError(5, 6),
    errors.OffsetNotFoundError(12, "lies at or past the end"),
    errors.InvalidTransactionError(61, "a marker of another type"),
    errors.SetAsideError("/data/t-0", "its files are not as planned"),
    errors.UnreadableBatchError(61, "its messages cannot be read"),
    errors.NoSpaceError("/data", 2000, 500),
    errors.SparkEndedError("Spark's JVM was killed by SIGKILL", "give it less to do"),
]


@pytest.mark.parametrize("error", EVERY_ERROR, ids=lambda error: type(error).__name__)
def test_an_error_survives_pickling(error):
    copy = pickle.loads(pickle.dumps(error))

    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


@pytest.mark.parametrize("error", EVERY_ERROR, ids=lambda error: type(error).__name__)
def test_an_error_can_be_caught_as_ours(error):
    assert isinstance(error, errors.KafkaSegmentsError)


def test_every_error_is_tested_here():
    of_module = {
        value
        for value in vars(errors).values()
        if inspect.isclass(value) and issubclass(value, Exception)
    }

    assert {type(error) for error in EVERY_ERROR} == of_module


def test_an_unlistable_source_is_wrong_usage():
    assert issubclass(errors.SourceError, errors.UsageError)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (errors.SourceError("/data", "no such folder"), "cannot list /data: no such folder"),
        (
            errors.OtherFileError(61, "last offset", 7, 3),
            "it is another file than the tables tell of: the batch at byte 61 has last offset 7,"
            " 3 expected",
        ),
        (errors.FileChangedError(100, 200), "the file ends at byte 100, it had 200 when opened"),
        (errors.CorruptTextError("meta.properties", "no version"), "meta.properties: no version"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_messages_say_what_was_found_and_where(error, message):
    assert str(error) == message
