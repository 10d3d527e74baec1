"""Lines from a TCP connection."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

from penstock.connectors.buffered import BufferedReader
from penstock.connectors.files.source import SchemaLike
from penstock.connectors.formats.line_format import LineFormat
from penstock.connectors.formats.lines import LINE_BYTES, TOO_LONG, LineBuffer, LineParser
from penstock.connectors.formats.registry import LineFormatName, line_format
from penstock.connectors.reader import NodeSource, Positions, Reader, Resume
from penstock.connectors.spool import CUT_OFF, Sockets, Spool, SpoolReader
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.errors import QueryError, RunError
from penstock.query.types import Schema

_RECEIVE_BYTES = 1 << 18
_BUFFER_BYTES = 1 << 19  # undecoded lines; beyond it the peer is held back by TCP itself
_RECEIVES = 4  # per look at the socket: a fast peer must not hold the thread
_POLL_NS = 1_000_000


class TcpLines(NodeSource):
    """Lines of JSON, text or CSV (fields in schema order, no header) from a TCP peer, until it closes.

    Connects to ``host:port`` or, with ``listen``, waits there for one peer; on this machine only, unless
    ``host`` says otherwise. **Not replayable:** what was sent before a crash is gone; on Spark, what had not
    been written beside the checkpoint yet. Lines that do not fit are bad records, and so is a last line that
    was cut off. No encryption, no password: across machines, put a tunnel in front.
    """

    def __init__(
        self,
        schema: SchemaLike,
        *,
        port: int,
        host: str = "127.0.0.1",
        format: LineFormatName | LineFormat = "jsonl",
        listen: bool = False,
        delimiter: str | None = None,
        ordered: bool = False,
        connect_seconds: float = 10.0,
    ) -> None:
        if not 0 <= port <= 65_535 or (port == 0 and not listen):
            raise QueryError("port must be between 1 and 65535", detail=f"got {port}")
        self._schema = Schema.of(schema)
        self._format = line_format(format, "lines", delimiter=delimiter)
        self._format.check(self._schema)
        self._host, self._port, self._listen = host, port, listen
        self._ordered, self._connect_seconds = ordered, connect_seconds
        #: Where it listens, once opened; tells the port if 0 was asked for.
        self.address: tuple[str, int] | None = None

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def ordered(self) -> bool:
        return self._ordered

    @property
    def bounded(self) -> bool:
        return False

    @property
    def heard_once(self) -> bool:
        return True

    def key(self) -> tuple[Any, ...]:
        if self._port == 0:
            return super().key()
        how = (self._listen, self._format, self._ordered)
        return ("TcpLines", self._host, self._port, *how, self._schema)

    def open(self, layout: Layout, strings: StringPool) -> list[Reader]:
        parser = self._parser(layout, strings)
        server, connection = self._connect()
        return [_LinesReader(layout, parser, self._place, server=server, connection=connection)]

    def positions(self, journal: str | None = None, start: Sequence[int] | None = None) -> Positions:
        if journal is None:
            raise RunError("lines from a connection need a folder that keeps them: none was given")
        if self._port == 0:
            raise RunError("nobody would learn which port was chosen: on Spark, give a port other than 0")
        return Spool(journal, self._connect, self._place, start or [0])

    def open_range(
        self,
        partition: int,
        resume: Resume,
        end: int,
        layout: Layout,
        strings: StringPool,
        hint: Any = None,
    ) -> Reader:
        folder, names = hint
        return SpoolReader(folder, names, self._parser(layout, strings), layout, resume)

    @property
    def _place(self) -> str:
        return f"{self._host}:{self._port}"

    def _parser(self, layout: Layout, strings: StringPool) -> LineParser:
        return self._format.parser(self._schema, layout, strings)

    def _connect(self) -> Sockets:
        try:
            if self._listen:
                family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
                server = socket.create_server((self._host, self._port), family=family, backlog=1)
                self.address = server.getsockname()[:2]
                return server, None
            return None, socket.create_connection((self._host, self._port), self._connect_seconds)
        except OSError as error:
            what = "listen on" if self._listen else "connect to"
            hint = "is the port free?" if self._listen else "start the peer first, or give listen=True"
            raise RunError(f"cannot {what} {self._place}: {error}; {hint}") from None


class _LinesReader(BufferedReader):
    def __init__(
        self,
        layout: Layout,
        parser: LineParser,
        place: str,
        *,
        server: socket.socket | None = None,
        connection: socket.socket | None = None,
    ) -> None:
        super().__init__(layout)
        self._parser, self._place = parser, place
        self._server, self._connection = server, connection
        for opened in (server, connection):
            if opened is not None:
                opened.setblocking(False)
        self._lines = LineBuffer()
        self._closed_by_peer = False
        self._cut_off = b""
        self._polled_ns: int | None = None

    def available(self, now_ns: int) -> int:
        self._polled_ns = now_ns
        self._receive()
        # What is decoded stays first; the lines behind it count as well, but may turn out bad.
        return self.buffered or self._lines.lines or (1 if self._bad else 0)

    @property
    def finished(self) -> bool:
        # Not before the bad records are taken: the last one may have been found without a read.
        return self._closed_by_peer and not (self.buffered or self._lines.lines or self._bad)

    def refill(self) -> None:
        chunk = self._lines.take()
        if not chunk:
            return
        parsed = self._parser.parse(chunk)
        for bad in parsed.bad:
            self.reject(self._records + bad.record, bad.text, bad.reason)
        self.hold(parsed.columns, parsed.count, parsed.records)
        self._reject_cut_off()

    def next_due_ns(self) -> int | None:
        return None if self._polled_ns is None or self._closed_by_peer else self._polled_ns + _POLL_NS

    def fileno(self) -> int | None:
        opened = self._connection or self._server
        return None if opened is None else opened.fileno()

    def close(self) -> None:
        for opened in (self._server, self._connection):
            if opened is not None:
                opened.close()
        self._server = self._connection = None

    def _receive(self) -> None:
        if self._connection is None and self._server is not None:
            try:
                self._connection, _ = self._server.accept()
            except BlockingIOError:
                return
            self._connection.setblocking(False)
            self._server.close()
            self._server = None
        for _ in range(_RECEIVES):
            if self._connection is None or self._lines.size >= _BUFFER_BYTES:
                return
            try:
                data = self._connection.recv(_RECEIVE_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                raise RunError(f"lost the connection to {self._place}: {error}") from None
            if data:
                self._lines.feed(data)
            else:
                self._end()

    def _end(self) -> None:
        assert self._connection is not None
        self._connection.close()
        self._connection = None
        self._closed_by_peer = True
        self._cut_off = self._lines.end()
        if not self._lines.lines:
            self._reject_cut_off()

    def _reject_cut_off(self) -> None:
        """Behind the last whole line, so that the record's number is known."""
        rest, self._cut_off = self._cut_off, b""
        if rest:
            too_long = len(rest) > LINE_BYTES
            reason = TOO_LONG if too_long else CUT_OFF
            self.reject(self._records, rest[:8_000].decode(errors="replace"), reason)
            self._records += 1
