"""Java calls back into Python; other users of the machine do not."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from penstock.spark.session.callbacks import is_of

_NOBODY = 65534
#: Asks for something of an object that there is not; prints what comes back.
_CALL = """
import socket, sys
link = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 20)
try:
    link.sendall(b"c\\nnobody\\nhello\\ne\\n")
    print(link.recv(100))
except OSError:
    print(b"")
"""


@pytest.fixture
def port(spark: SparkSession) -> int:
    gateway = SparkContext._gateway
    assert gateway is not None
    return int(gateway._callback_server.port)


def called_by(user: int, port: int) -> str:
    done = subprocess.run(
        ["/usr/bin/env", "python3", "-c", _CALL, str(port)],
        capture_output=True,
        text=True,
        check=True,
        user=user,
        env={"PATH": "/usr/bin:/bin"},
        cwd="/",
    )
    return done.stdout.strip()


def test_this_users_calls_are_heard(port: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _CALL, str(port)], capture_output=True, text=True, check=True
    )
    assert "Object ID unknown" in done.stdout


@pytest.mark.skipif(
    os.geteuid() != 0 or not os.access("/usr/bin/python3", os.X_OK), reason="needs root, and a Python for all"
)
def test_another_users_calls_are_not_heard(port: int) -> None:
    assert called_by(_NOBODY, port) == "b''"
    assert "Object ID unknown" in called_by(0, port)


@pytest.fixture
def link() -> Iterator[socket.socket]:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()),
    ):
        accepted, _ = server.accept()
        with accepted:
            yield accepted


def test_the_user_at_the_other_end_is_known(link: socket.socket) -> None:
    assert is_of(os.geteuid(), link)
    assert not is_of(os.geteuid() + 1, link)


def test_whoever_has_left_is_nobody() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        far = socket.create_connection(server.getsockname())
        link, _ = server.accept()
        with link:
            assert is_of(os.geteuid(), link)
            far.close()  # from now on the kernel lists it as root's
            assert not is_of(0, link)
