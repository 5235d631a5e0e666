"""The text of the recovery points, advanced for some logs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_segments.verbs.change.recovery.apply.advanced_checkpoint import advanced, points_of

POINTS = st.dictionaries(
    st.tuples(st.sampled_from(["a", "b-1", "c.d_e"]), st.integers(0, 3)), st.integers(0, 2**63 - 1)
)


def test_only_the_lines_of_the_logs_given_change_and_missing_ones_are_added() -> None:
    text = "0\n3\nb 1 5\na 0 7\n__x 2 9\n"

    assert advanced(text, {("a", 0): 70, ("new", 4): 1}) == (
        "0\n4\nb 1 5\na 0 70\n__x 2 9\nnew 4 1\n"
    )


def test_all_lines_of_a_log_change_of_which_a_broker_takes_the_last() -> None:
    text = "0\n3\na 0 5\nb 1 5\na 0 2\n"

    assert points_of(text) == {("a", 0): 2, ("b", 1): 5}
    assert advanced(text, {("a", 0): 7}) == "0\n3\na 0 7\nb 1 5\na 0 7\n"


def test_a_line_that_says_what_it_is_to_say_stays_as_it_is_written() -> None:
    assert advanced("0\n1\na  0 +7\n", {("a", 0): 7}) == "0\n1\na  0 +7\n"


@pytest.mark.parametrize("space", ["\x0b", "\x0c", "\x85", "\x1c"])
def test_lines_end_where_javas_do(space: str) -> None:
    text = f"0\n2\na{space} 0 7\nb 1 5\n"

    assert advanced(text, {("b", 1): 6}).endswith("b 1 6\n")


@pytest.mark.parametrize("text", [None, "", "0\n0\n", "0\n2\na 0 7\n", "1\n1\na 0 7\n", "0\n1\nx"])
def test_a_checkpoint_that_a_broker_does_not_read_counts_as_empty(text: str | None) -> None:
    assert points_of(text) == {}
    assert advanced(text, {("a", 0): 1}) == "0\n1\na 0 1\n"


@given(POINTS, POINTS)
def test_a_broker_reads_the_old_points_with_the_new_ones_over_them(
    old: dict[tuple[str, int], int], new: dict[tuple[str, int], int]
) -> None:
    assert points_of(advanced(advanced(None, old), new)) == old | new
