from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.connectors import spool as spool_module
from penstock.connectors.reader import Positions
from penstock.query.errors import RunError
from penstock.sources import TcpLines
from tests.connectors.drain import RangeDrain

SCHEMA = {"x": "int64"}
Opened = Callable[..., tuple[RangeDrain, socket.socket]]


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(10)
        yield listening


@pytest.fixture
def opened(server: socket.socket, tmp_path: Path) -> Iterator[Opened]:
    """Begins or goes on with a run; the peer is new each time."""
    everything: list[Positions | socket.socket] = []

    def begin(start: int = 0) -> tuple[RangeDrain, socket.socket]:
        source = TcpLines(SCHEMA, port=server.getsockname()[1])
        drain = RangeDrain(source, str(tmp_path / "spool"), start=[start])
        peer, _ = server.accept()
        everything.extend((drain.positions, peer))
        return drain, peer

    yield begin
    for one in everything:
        one.close()


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(2_000_000):
        if condition():
            return
        os.sched_yield()
    raise AssertionError("it did not happen")


def end_of(positions: Positions, limit: int | None = None) -> int:
    """Waits until the peer has closed; returns where it ends."""

    def has_ended() -> bool:
        positions.latest([0], limit)
        return positions.final is not None

    wait_until(has_ended)
    assert positions.final is not None
    return positions.final[0]


def lines(*numbers: int) -> bytes:
    return b"".join(b'{"x": %d}\n' % number for number in numbers)


def numbers(drain: RangeDrain) -> list[int]:
    return [row["x"] for row in drain.rows]


def test_lines_are_written_down_and_read_until_the_peer_closes(opened: Opened) -> None:
    drain, peer = opened()
    positions = drain.positions
    assert positions.latest([0], None) == [0]
    peer.sendall(lines(1, 2) + b'{"x": ')
    wait_until(lambda: positions.latest([0], None) == [1])
    assert positions.final is None
    drain.read(1)
    assert numbers(drain) == [1, 2]
    peer.sendall(b"3}\nno number\n" + lines(4) + b'{"x": 5')
    peer.close()
    end = end_of(positions)
    assert positions.latest([1], None) == [end]
    drain.read(end)
    assert numbers(drain) == [1, 2, 3, 4]
    assert [(bad.offset, bad.record, bad.reason.split(":")[0]) for bad in drain.bad] == [
        (3, "no number", "the line is no JSON"),
        (5, '{"x": 5', "the connection was closed in the middle of the line"),
    ]
    assert (drain.resume.offset, drain.resume.records) == (4, 6)


def test_a_run_that_goes_on_has_the_pieces_of_the_one_before(opened: Opened, tmp_path: Path) -> None:
    drain, peer = opened()
    peer.sendall(lines(1))
    wait_until(lambda: drain.positions.latest([0], None) == [1])
    peer.sendall(lines(2))
    wait_until(lambda: drain.positions.latest([0], None) == [2])
    drain.read(1)
    drain.positions.release([1])
    drain.positions.close()
    assert len(list((tmp_path / "spool").iterdir())) == 1
    again, other = opened(1)
    assert again.positions.latest([1], None) == [2]
    other.sendall(lines(3))
    wait_until(lambda: again.positions.latest([1], None) == [3])
    again.read(3)
    assert numbers(drain) + numbers(again) == [1, 2, 3]


def test_the_end_is_remembered(opened: Opened, tmp_path: Path) -> None:
    drain, peer = opened()
    peer.sendall(lines(1))
    peer.close()
    final = [end_of(drain.positions)]
    drain.positions.release(final)
    nobody = TcpLines(SCHEMA, port=1).positions(str(tmp_path / "spool"), final)
    assert nobody.final == final
    assert nobody.latest(final, None) == final


def test_a_limit_cuts_pieces_by_lines(opened: Opened) -> None:
    drain, peer = opened()
    peer.sendall(lines(*range(7)))
    peer.close()
    end = end_of(drain.positions, limit=3)
    while drain.resume.position < end:
        before = len(drain.rows)
        (until,) = drain.positions.latest([drain.resume.position], 3)
        drain.read(until)
        assert len(drain.rows) - before <= 3
    assert numbers(drain) == list(range(7))


def test_a_lost_connection_is_told_after_what_came_before_it(opened: Opened) -> None:
    drain, peer = opened()
    peer.sendall(lines(1))
    wait_until(lambda: drain.positions.latest([0], None) == [1])
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()
    with pytest.raises(RunError, match=r"lost the connection to 127\.0\.0\.1"):
        wait_until(lambda: drain.positions.latest([1], None) != [1])


def test_a_fast_peer_is_held_back(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_module, "_BUFFER_BYTES", 1)
    monkeypatch.setattr(spool_module, "_RECEIVE_BYTES", 9)  # one line
    drain, peer = opened()
    peer.sendall(lines(1, 2, 3))
    wait_until(lambda: drain.positions.latest([0], None) == [3])  # a line per question
    drain.read(3)
    assert numbers(drain) == [1, 2, 3]


def test_what_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="need a folder that keeps them"):
        TcpLines(SCHEMA, port=1).positions()
    with pytest.raises(RunError, match="give a port other than 0"):
        TcpLines(SCHEMA, port=0, listen=True).positions(str(tmp_path))
    with pytest.raises(RunError, match="cannot connect to"):
        TcpLines(SCHEMA, port=1).positions(str(tmp_path))
    (tmp_path / "000000000003-1.lines").write_bytes(lines(1))
    with pytest.raises(RunError, match=r"lines from .* are lost: piece 2 is not in"):
        TcpLines(SCHEMA, port=1).positions(str(tmp_path), [2])
