"""What is kept is kept of the thing itself, not of its equals, and not for ever."""

from pinchpoint.diagnosis.identity import once_each


def test_a_thing_is_looked_at_once_and_its_equal_anew() -> None:
    looked: list[list[int]] = []

    @once_each(8)
    def total(numbers: list[int]) -> int:
        looked.append(numbers)
        return sum(numbers)

    one, other = [1, 2], [1, 2]
    assert [total(one), total(one), total(other)] == [3, 3, 3]
    assert [each is one for each in looked] == [True, False]


def test_the_oldest_makes_room_and_is_found_again() -> None:
    looked = 0

    @once_each(2)
    def pair(one: list[int], other: list[int]) -> tuple[int, int]:
        nonlocal looked
        looked += 1
        return one[0], other[0]

    first, second, third = [1], [2], [3]
    for one, other in ((first, second), (second, first), (third, first), (first, second)):
        assert pair(one, other) == (one[0], other[0])
    assert looked == 4
    assert pair(third, first) == (3, 1)
    assert looked == 4
