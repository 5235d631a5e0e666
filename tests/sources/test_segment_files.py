"""The files of segments in a folder, links that lead nowhere among them or not."""

from kafka_segments.engine.sources.segment_files import _rows_of

LOG, TIME_INDEX = f"{0:020d}.log", f"{0:020d}.timeindex"


def test_a_link_that_leads_nowhere_goes_with_its_segment_and_is_no_file_to_a_broker(tmp_path):
    (tmp_path / LOG).write_bytes(b"log")
    (tmp_path / TIME_INDEX).symlink_to("gone")

    for only_found, names in ((False, [TIME_INDEX, LOG]), (True, [LOG])):
        (row,) = _rows_of(str(tmp_path), [0], only_found=only_found)
        assert [file["name"] for file in row["files"]] == names
        assert row["unlisted"] is None
