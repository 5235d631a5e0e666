"""Links that a comparison of copies leaves out are told: what lies there would count as lost."""

from pathlib import Path

from kafka_segments.files.folders.kinds import NOT_FOLLOWED
from kafka_segments.files.folders.source_folder import list_source_folder
from kafka_segments.verbs.copies.divergence.read_copies import link_text


def test_a_link_is_told_with_where_it_leads_and_what_that_means(tmp_path: Path) -> None:
    (tmp_path / "disk" / "t-0").mkdir(parents=True)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "t-0").symlink_to(tmp_path / "disk" / "t-0")

    (row,) = (
        found
        for found in list_source_folder(str(tmp_path / "logs"), "")
        if found.kind == NOT_FOLLOWED
    )

    assert link_text(row._asdict()) == (
        f"{tmp_path}/logs/t-0: a link out of the source, to {tmp_path}/disk/t-0: not followed;"
        " what lies there is taken for absent"
    )
