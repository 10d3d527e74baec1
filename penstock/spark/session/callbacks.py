"""The port on which Java calls back into Python: closed to other users of the machine.

Calls from Python to Java carry a token. For those from Java to Python PySpark sets none, and Java would not
send it. So who calls is looked up where the kernel lists connections.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaGateway
from pyspark.java_gateway import ensure_callback_server_started

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_NO_INODE = "0"


def close_to_others(gateway: JavaGateway) -> None:
    """Starts the server for Java's calls, and lets it hear this user's processes only."""
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    if not _can_tell():
        return
    server: Any = gateway._callback_server
    create = server._create_connection

    def checked(link: socket.socket, stream: Any) -> Any:
        if not is_of(os.geteuid(), link):
            link.shutdown(socket.SHUT_RDWR)  # whoever reads from it finds its end
        return create(link, stream)

    server._create_connection = checked


def is_of(user: int, link: socket.socket) -> bool:
    """Whether a process of that user is at the other end of a connection on this machine."""
    near, far = link.getsockname()[1], link.getpeername()[1]
    return user in {owner for table in _TABLES for owner in _owners(table, far, near)}


def _owners(table: Path, port: int, remote_port: int) -> list[int]:
    """The users of connections from one port to another, as the kernel has them in a table."""
    try:
        lines = table.read_text().splitlines()[1:]
    except OSError:
        return []
    rows = [line.split() for line in lines]
    return [
        int(row[7])
        for row in rows
        # one that nobody has any more counts as root's
        if (_port(row[1]), _port(row[2])) == (port, remote_port) and row[9] != _NO_INODE
    ]


def _can_tell() -> bool:
    """Whether this system lists connections as Linux does; else Java itself would be locked out."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        link, _ = server.accept()
        with link:
            return is_of(os.geteuid(), link)


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)
