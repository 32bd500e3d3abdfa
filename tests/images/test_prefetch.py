"""Parts that are read ahead come in order, and no more than asked for are read."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

import pytest

from stamp.images.prefetch import prefetched


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_parts_come_in_order(ahead: int) -> None:
    assert list(prefetched(lambda part: part**2, range(20), ahead)) == [k**2 for k in range(20)]
    assert list(prefetched(lambda part: part, [], ahead)) == []


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_no_more_than_so_many_are_asked_for_ahead(ahead: int) -> None:
    asked: list[int] = []

    def parts() -> Iterator[int]:
        for part in range(20):
            asked.append(part)
            yield part

    for done, _ in enumerate(prefetched(lambda part: part, parts(), ahead)):
        assert len(asked) <= done + 1 + ahead


def test_the_next_part_is_read_while_one_is_worked_on() -> None:
    began = [Event() for _ in range(3)]

    def read(part: int) -> int:
        began[part].set()
        return part

    found = prefetched(read, range(3), 2)
    assert next(found) == 0
    assert all(each.wait(60) for each in began)


@pytest.mark.parametrize("ahead", [0, 2])
def test_an_error_comes_where_its_part_would(ahead: int) -> None:
    def read(part: int) -> int:
        if part == 3:
            raise ValueError("part 3")
        return part

    found = prefetched(read, range(9), ahead)
    assert [next(found) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="part 3"):
        next(found)
