"""Pieces are decoded ahead and side by side, and come in their order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import pytest

from penstock.connectors.files.decoding import Decoding, DecodingThreads, Piece


def numbers(decoded: list[int], count: int) -> Iterator[Piece[int]]:
    def decode(number: int) -> int:
        decoded.append(number)
        return number

    for number in range(count):
        yield partial(decode, number)


def test_results_come_in_order_however_they_were_decoded() -> None:
    threads, decoded = DecodingThreads(), list[int]()
    decoding = Decoding(numbers(decoded, 500), threads)
    results = [decoding.take() for _ in range(501)]
    threads.close()
    assert results == [*range(500), None]
    assert sorted(decoded) == list(range(500))


def test_what_nobody_has_begun_is_decoded_by_the_one_who_asks() -> None:
    """All threads are held up in other pieces: the reader goes on alone, as far as it may look ahead."""
    release, threads = threading.Event(), DecodingThreads()

    def pieces() -> Iterator[Piece[int]]:
        for number in range(3):
            yield partial(lambda number: number, number)

    def held_up() -> Iterator[Piece[int]]:
        while True:
            yield partial(lambda: int(release.wait()))

    blocking = Decoding(held_up(), threads)
    blocking._look_ahead()
    decoding = Decoding(pieces(), threads)
    assert [decoding.take() for _ in range(4)] == [0, 1, 2, None]
    release.set()
    blocking.close()
    threads.close()


def test_one_piece_alone_begins_no_thread() -> None:
    before, threads = threading.active_count(), DecodingThreads()
    decoding = Decoding(numbers([], 1), threads)
    assert (decoding.take(), decoding.take()) == (0, None)
    assert threading.active_count() == before


def test_an_error_comes_where_its_piece_would_have() -> None:
    threads = DecodingThreads()

    def pieces() -> Iterator[Piece[int]]:
        yield lambda: 1
        yield lambda: 1 // 0
        yield lambda: 3

    decoding = Decoding(pieces(), threads)
    assert decoding.take() == 1
    with pytest.raises(ZeroDivisionError):
        decoding.take()
    decoding.close()
    threads.close()
    assert not any(thread.name.startswith("penstock-decode") for thread in threading.enumerate())
