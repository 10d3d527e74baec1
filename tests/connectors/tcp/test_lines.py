from __future__ import annotations

import select
import socket
import struct
from collections.abc import Iterator

import pytest

from penstock.connectors.formats.lines import LINE_BYTES
from penstock.query.errors import QueryError, RunError
from penstock.sources import TcpLines
from tests.connectors.drain import Drain

SCHEMA = {"ts": "timestamp", "lane": "string"}


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(10)
        yield listening


def read_until(drain: Drain, rows: int, bad: int = 0) -> list[str]:
    """Reads until so many rows and bad records are there; returns the reasons."""
    reasons: list[str] = []
    for step in range(10_000):
        if drain.reader.available(step) > 0:
            drain.read(100)
        reasons += [f"{entry.offset}: {entry.reason}" for entry in drain.reader.take_bad()]
        if len(drain.rows) >= rows and len(reasons) >= bad:
            return reasons
        descriptor = drain.reader.fileno()
        if descriptor is not None:
            select.select([descriptor], [], [], 10)
    raise AssertionError(f"only {len(drain.rows)} rows and {len(reasons)} bad records came")


def until_finished(drain: Drain) -> None:
    for step in range(100):
        drain.reader.available(step)
        if drain.reader.finished:
            return
        descriptor = drain.reader.fileno()
        assert descriptor is not None
        select.select([descriptor], [], [], 10)
    raise AssertionError("the source did not finish")


def test_lines_are_read_as_they_come_until_the_peer_closes(server: socket.socket) -> None:
    source = TcpLines(SCHEMA, port=server.getsockname()[1])
    assert not source.bounded
    drain = Drain(source)
    peer, _ = server.accept()
    with peer:
        assert drain.reader.available(5) == 0
        assert drain.reader.next_due_ns() == 5 + 1_000_000
        peer.sendall(b'{"ts": 1, "lane": "a"}\n{"ts": 2, "la')
        read_until(drain, 1)
        assert not drain.reader.finished
        peer.sendall(b'ne": "b"}\nnonsense\n{"ts": 3, "lane": "c"}\n')
        assert read_until(drain, 3, 1) == ["2: the line is no JSON: Expecting value at character 0"]
    until_finished(drain)
    assert drain.rows == [{"ts": 1, "lane": "a"}, {"ts": 2, "lane": "b"}, {"ts": 3, "lane": "c"}]
    drain.reader.close()


def test_it_can_listen_for_a_peer_on_loopback() -> None:
    source = TcpLines(SCHEMA, port=0, listen=True, format="csv", delimiter=";")
    drain = Drain(source)
    assert source.address is not None
    assert source.address[0] == "127.0.0.1"
    assert drain.reader.available(0) == 0
    with socket.create_connection(source.address, 10) as peer:
        peer.sendall(b"17;a\n2024-01-01;b\n18\n")
        assert read_until(drain, 2, 1) == ["2: the line has 1 fields, not 2"]
    until_finished(drain)
    drain.reader.close()


def test_a_last_line_that_was_cut_off_is_a_bad_record(server: socket.socket) -> None:
    drain = Drain(TcpLines(SCHEMA, port=server.getsockname()[1], format="csv"))
    peer, _ = server.accept()
    with peer:
        peer.sendall(b"1,a\n\n2,b\n12")
    reasons = read_until(drain, 2, 1)
    assert reasons == ["2: the connection was closed in the middle of the line"]
    assert drain.reader.finished
    drain.reader.close()


def test_it_is_not_finished_before_the_last_bad_record_is_taken(server: socket.socket) -> None:
    drain = Drain(TcpLines(SCHEMA, port=server.getsockname()[1]))
    peer, _ = server.accept()
    peer.sendall(b"{")
    peer.close()
    descriptor = drain.reader.fileno()
    assert descriptor is not None
    for step in range(100):
        select.select([descriptor], [], [], 10)
        if drain.reader.available(step):
            break
    assert not drain.reader.finished
    assert drain.read(5) == 0
    assert [bad.offset for bad in drain.reader.take_bad()] == [0]
    assert drain.reader.finished


def test_a_line_that_is_too_long_is_a_bad_record(server: socket.socket) -> None:
    drain = Drain(TcpLines(SCHEMA, port=server.getsockname()[1], format="csv"))
    peer, _ = server.accept()
    with peer:
        peer.setblocking(False)
        left = memoryview(b"1,a\n" + b"x" * (LINE_BYTES + 500_000) + b"\n2,b\n")
        step = 0
        while left:  # both ends in one thread: send what fits, read what came
            step += 1
            try:
                left = left[peer.send(left) :]
            except BlockingIOError:
                drain.reader.available(step)
    assert read_until(drain, 2, 1) == ["1: the line is longer than 1,048,576 bytes"]
    assert [row["ts"] for row in drain.rows] == [1, 2]
    drain.reader.close()


def test_a_lost_connection_stops_the_run_with_an_error(server: socket.socket) -> None:
    drain = Drain(TcpLines(SCHEMA, port=server.getsockname()[1]))
    peer, _ = server.accept()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close with a reset
    peer.close()
    descriptor = drain.reader.fileno()
    assert descriptor is not None
    select.select([descriptor], [], [], 10)
    with pytest.raises(RunError, match=r"lost the connection to 127\.0\.0\.1"):
        drain.reader.available(0)
    drain.reader.close()


def test_nobody_there_is_an_error_that_says_so(server: socket.socket) -> None:
    port = server.getsockname()[1]
    server.close()
    with pytest.raises(RunError, match=f"cannot connect to 127.0.0.1:{port}.*listen=True"):
        Drain(TcpLines(SCHEMA, port=port))
    with pytest.raises(QueryError, match="port"):
        TcpLines(SCHEMA, port=0)
    with pytest.raises(QueryError, match="unknown format 'xml'"):
        TcpLines(SCHEMA, port=1, format="xml")  # type: ignore[arg-type]
