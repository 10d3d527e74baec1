"""Lines from a connection, kept in a folder so that they can be read again: a position counts its pieces."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Condition, Thread

from penstock.connectors.buffered import BufferedReader
from penstock.connectors.formats.lines import LINE_BYTES, TOO_LONG, LineBuffer, LineParser
from penstock.connectors.reader import ENDLESS, Positions, Resume
from penstock.memory.layout import Layout
from penstock.query.errors import RunError
from penstock.state.files import Folder

#: A last line that no line end followed.
CUT_OFF = "the connection was closed in the middle of the line"

_RECEIVE_BYTES = 1 << 18
_BUFFER_BYTES = 1 << 23  # lines not on disk yet; beyond it the peer is held back by TCP itself
_CHUNK_BYTES = 1 << 19
_TIMEOUT_S = 0.1
_LINES, _END = "lines", "end"

#: A socket that waits for its peer, or one that has it.
Sockets = tuple[socket.socket | None, socket.socket | None]


@dataclass(frozen=True)
class Piece:
    """A file of whole lines; or the last one, with what followed the last line end.

    >>> Piece(3, 120, "lines").name, Piece.named("000000000004-0.end")
    ('000000000003-120.lines', Piece(number=4, lines=0, kind='end'))
    """

    number: int
    lines: int
    kind: str

    @property
    def name(self) -> str:
        return f"{self.number:012d}-{self.lines}.{self.kind}"

    @classmethod
    def named(cls, name: str) -> Piece | None:
        """The piece of that name; None if it is another file."""
        stem, _, kind = name.partition(".")
        number, _, lines = stem.partition("-")
        if kind not in (_LINES, _END) or not (number + lines).isdigit():
            return None
        return cls(int(number), int(lines), kind)


class Spool(Positions):
    """Receives lines in the background and writes them down when it is asked how far they go.

    Exactly once from then on. What was received since the last question is lost in a crash, as is what the
    peer sends while nobody runs. A peer that has closed the connection is not waited for again.
    """

    def __init__(self, folder: str, connect: Callable[[], Sockets], place: str, start: Sequence[int]) -> None:
        self._path, self._folder = folder, Folder(folder)
        found = (Piece.named(name) for name in self._folder.names())
        self._pieces = {piece.number: piece for piece in found if piece is not None}
        self._next = max([start[0], *(number + 1 for number in self._pieces)])
        self._place = place
        self._between(start[0], self._next)
        self._ended = any(piece.kind == _END for piece in self._pieces.values())
        self._receiver = None if self._ended else _Receiver(connect(), place)

    @property
    def final(self) -> list[int] | None:
        return [self._next] if self._ended else None

    def latest(self, start: Sequence[int], limit: int | None) -> list[int]:
        self._write_down(ENDLESS if limit is None else max(1, limit))
        (end,) = start
        lines = 0
        while end < self._next:
            lines += self._pieces[end].lines
            if limit is not None and lines > limit and end > start[0]:
                break
            end += 1
        return [end]

    def waiting(self, start: Sequence[int]) -> int:
        return sum(piece.lines for number, piece in self._pieces.items() if number >= start[0])

    def describe(self, partition: int, start: int, end: int) -> tuple[str, list[str]]:
        """The folder and the names of the pieces."""
        return self._path, [piece.name for piece in self._between(start, end)]

    def release(self, before: Sequence[int]) -> None:
        for piece in list(self._pieces.values()):
            # the end stays: a run that goes on must not wait for the peer again
            if piece.number < before[0] and piece.kind == _LINES:
                self._folder.remove(piece.name)
                del self._pieces[piece.number]

    def close(self) -> None:
        if self._receiver is not None:
            self._receiver.close()

    def _between(self, start: int, end: int) -> list[Piece]:
        for number in range(start, end):
            if number not in self._pieces:
                raise RunError(
                    f"lines from {self._place} are lost: piece {number} is not in '{self._path}'; "
                    f"start with a new checkpoint"
                )
        return [self._pieces[number] for number in range(start, end)]

    def _write_down(self, lines_per_piece: int) -> None:
        if self._ended or self._receiver is None:
            return
        data, rest = self._receiver.take()
        for lines, part in _parts(data, lines_per_piece):
            self._add(Piece(self._next, lines, _LINES), part)
        if rest is not None:
            self._add(Piece(self._next, 1 if rest else 0, _END), rest)
            self._ended = True

    def _add(self, piece: Piece, data: bytes) -> None:
        self._folder.write(piece.name, data)
        self._pieces[piece.number] = piece
        self._next = piece.number + 1


class _Receiver:
    """A thread that reads a connection into memory."""

    def __init__(self, sockets: Sockets, place: str) -> None:
        self._place = place
        self._server, self._connection = sockets
        self._changed = Condition()
        self._lines = LineBuffer()
        self._rest: bytes | None = None  # once the peer has closed: what came behind the last line
        self._error: OSError | None = None
        self._closing = False
        self._thread = Thread(target=self._run, name=f"receive {place}", daemon=True)
        self._thread.start()

    def take(self) -> tuple[bytes, bytes | None]:
        """All whole lines since the last call; and if the peer has closed, what came behind them."""
        with self._changed:
            # An error is told when all that came before it has been taken.
            if self._error is not None and not self._lines.lines:
                raise RunError(f"lost the connection to {self._place}: {self._error}")
            data = self._lines.take()
            self._changed.notify()
            return data, self._rest

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._closing and self._rest is None:
                self._receive()
        except OSError as error:
            with self._changed:
                self._error = error
        for opened in (self._server, self._connection):
            if opened is not None:
                opened.close()

    def _receive(self) -> None:
        try:
            if self._connection is None:
                assert self._server is not None
                self._server.settimeout(_TIMEOUT_S)
                self._connection, _ = self._server.accept()
                self._server.close()
            self._connection.settimeout(_TIMEOUT_S)
            data = self._connection.recv(_RECEIVE_BYTES)
        except TimeoutError:
            return
        with self._changed:
            if data:
                self._lines.feed(data)
            else:
                self._rest = self._lines.end()
            self._changed.wait_for(lambda: self._closing or self._lines.size < _BUFFER_BYTES)


class SpoolReader(BufferedReader):
    """Reads pieces of a spool."""

    def __init__(
        self, folder: str, names: Sequence[str], parser: LineParser, layout: Layout, resume: Resume
    ) -> None:
        super().__init__(layout, resume=resume)
        self._parser = parser
        self._chunks = _chunks(Folder(folder), names)
        self._chunk = next(self._chunks, None)

    def available(self, now_ns: int) -> int:
        return self.buffered or (0 if self._chunk is None else 1)

    @property
    def finished(self) -> bool:
        return not self.buffered and self._chunk is None

    def refill(self) -> None:
        if self._chunk is None:
            return
        kind, data = self._chunk
        if kind == _END:
            self._reject_cut_off(data)
        else:
            parsed = self._parser.parse(data)
            for bad in parsed.bad:
                self.reject(self._records + bad.record, bad.text, bad.reason)
            self.hold(parsed.columns, parsed.count, parsed.records)
        self._chunk = next(self._chunks, None)

    def _reject_cut_off(self, rest: bytes) -> None:
        """Keeps what came behind the last whole line as a bad record."""
        if rest:
            reason = TOO_LONG if len(rest) > LINE_BYTES else CUT_OFF
            self.reject(self._records, rest[:8_000].decode(errors="replace"), reason)
            self._records += 1


def _chunks(folder: Folder, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """The pieces, cut so that the parser's quick way takes them."""
    for name in names:
        try:
            data = bytes(folder.read(name))
        except OSError as error:
            raise RunError(
                f"cannot read lines from the spool: {error}; the folder '{folder.path}' must be one that "
                f"every worker sees"
            ) from None
        if name.endswith(_END):
            yield _END, data
            continue
        start = 0
        while start < len(data):
            # At a line end: within the size if there is one, else behind the long line.
            stop = data.rfind(b"\n", start, start + _CHUNK_BYTES) + 1
            stop = stop or data.find(b"\n", start) + 1
            yield _LINES, data[start:stop]
            start = stop


def _parts(data: bytes, lines: int) -> Iterator[tuple[int, bytes]]:
    """Whole lines in parts of at most so many."""
    count = data.count(b"\n")
    if count <= lines:
        if count:
            yield count, data
        return
    split = data.split(b"\n")
    for start in range(0, count, lines):
        part = split[start : min(start + lines, count)]
        yield len(part), b"".join(line + b"\n" for line in part)
