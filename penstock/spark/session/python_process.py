"""Python as a local Spark starts it: PySpark's own, but that it ends without a word when Spark hangs up.

Spark hangs up on a process that waits for work when the session ends, when a stream stops, and after a minute
without work. PySpark takes that for an error, tries to tell Spark so, fails, and writes that to the terminal.
What goes wrong in a task or in a source is told to Spark as ever.

Run as a file by ``python_process.sh``, in place of ``python``, so it must not import this package.
"""

from __future__ import annotations

import os
import runpy
import socket
import sys

_HUNG_UP = 1  # other than 0: the worker takes no further task


def main() -> None:
    """Runs ``-m module argument ...``."""
    flag, *rest = sys.argv[1:]
    if flag != "-m":
        os.execv(sys.executable, [sys.executable, flag, *rest])
    sys.path.insert(0, os.getcwd())  # as -m does
    sys.argv = rest
    if rest[0] == "pyspark.daemon":
        _run_daemon()
        return
    try:
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    except ConnectionError:
        os._exit(_HUNG_UP)  # out of PySpark comes only what it could not tell Spark
    except Exception as error:
        if _is_unreachable(error):
            os._exit(_HUNG_UP)  # Spark has ended since it started this process
        raise


def _is_unreachable(error: Exception) -> bool:
    """Whether PySpark says that nobody listens any more where Spark did."""
    from pyspark.errors import PySparkException

    return isinstance(error, PySparkException) and error.getCondition() == "CANNOT_OPEN_SOCKET"


def _run_daemon() -> None:
    """Runs PySpark's daemon, whose workers look whether there is a next task before they begin with it."""
    from pyspark import daemon

    next_task = daemon.worker

    def worker(sock: socket.socket, authenticated: bool) -> int:
        try:
            has_begun = bool(sock.recv(1, socket.MSG_PEEK))
        except ConnectionError:
            has_begun = False
        return next_task(sock, authenticated) if has_begun else _HUNG_UP

    daemon.worker = worker
    daemon.manager()


if __name__ == "__main__":
    main()
