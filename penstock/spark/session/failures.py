"""What went wrong on Spark, in Penstock's words: errors of tasks and of the stream come wrapped in long
traces."""

from __future__ import annotations

import contextlib
import re
import subprocess

from pyspark import SparkContext

from penstock.query.errors import PenstockError, RunError

# The last line of a Python traceback that one of our own errors made, wherever it stands in the text.
_OURS = re.compile(r"^(?:\s*)penstock\.[\w.]*Error: (.+)$", re.MULTILINE)
_PYTHON = re.compile(r"^([A-Za-z_][\w.]*(?:Error|Exception|Interrupt)): (.+)$", re.MULTILINE)

_RESULTS = re.compile(r"Total size of serialized results[^\n]*? is bigger than \S*maxResultSize[^\n]*")
_MEMORY = re.compile(r"java\.lang\.OutOfMemoryError[^\n]*|Java heap space|GC overhead limit exceeded")
#: What Spark and its bridge to Python say when the driver's Java is gone, or about to go: not why.
_GONE = re.compile(
    r"SparkContext was shut down|stopped SparkContext|Answer from Java side is empty|"
    r"trying to connect to the Java server|Connection refused|Connection reset by peer|"
    r"while calling [\w:.$]+\s*\Z"  # with no cause: not even that could be asked for
)
#: What another attempt may mend: processes that died, did not answer in time or could not be started, and
#: what was lost with them.
_PASSING = re.compile(
    r"Python worker (?:failed to connect back|exited unexpectedly)|waiting for the Python worker|"
    r"Python daemon|pyspark\.daemon|EOFException|java\.net\.\w+Exception|ClosedChannelException|"
    r"IOException: (?:Broken pipe|Stream closed|Connection reset|Socket closed)|"
    r"ExecutorLostFailure|FetchFailed|MetadataFetchFailed|failed to fetch|BlockNotFound|"
    r"(?:NoSuchFile|FileNotFound)Exception: \S*/shuffle_|"
    r"java\.util\.concurrent\.TimeoutException|Futures timed out|RpcTimeoutException|"
    r"^(?:\w+\.)*(?:EOFError|BrokenPipeError|Connection\w*Error)\b",
    re.MULTILINE,
)
#: What Spark puts around the error that a streaming query ended by.
_STREAM_FAILED = re.compile(r"^\[STREAM_FAILED\].*? terminated with exception: | SQLSTATE: XXKST$")
_OUT_OF_MEMORY = 52  # Spark's exit status
_KILLED = -9  # by a signal that nobody can catch: as a rule the machine had no memory left
_END_S = 5.0
_HINT = (
    "let batches be smaller, e.g. ps.Spark(batch_bytes='16m'), or give the driver more memory, "
    "e.g. settings={'spark.driver.memory': '8g'}; the checkpoint is whole, the batch is planned again by the "
    "limits of the next run"
)


def told_by_spark(error: BaseException) -> BaseException:
    """One clear error for whatever Spark raised; an error of Penstock's that travelled through it comes back
    as it was said."""
    if isinstance(error, PenstockError) or not isinstance(error, Exception):
        return error
    text = str(error)
    ours = _OURS.findall(text)
    if ours:
        return RunError(ours[-1].strip())
    too_large = _too_large(text)
    if too_large is not None:
        return RunError(f"a batch was too large: {too_large}; {_HINT}")
    python = [f"{kind}: {what}" for kind, what in _PYTHON.findall(text) if "py4j" not in kind]
    if python:
        return RunError(f"a task on Spark failed: {python[-1].strip()}")
    return RunError(f"Spark failed: {_root(text) or type(error).__name__}")


def is_passing(error: BaseException) -> bool:
    """Whether another attempt may get over it: not what our own errors or a function's say, which the same
    input brings back, nor what ended the driver's Java."""
    if isinstance(error, PenstockError) or not isinstance(error, Exception):
        return False
    text = f"{error}\n{getattr(error, '_stackTrace', '')}"
    if _OURS.search(text) or _RESULTS.search(text) or _MEMORY.search(text):
        return False
    return _PASSING.search(text) is not None and _java_runs()


def given_up(error: BaseException, restarts: int) -> RunError:
    """What is said when the last restart has failed too."""
    tries = "not restarted" if restarts == 0 else f"restarted {restarts} times in a row, no batch counted"
    return RunError(
        f"Spark keeps losing what it needs: {told_by_spark(error)}; {tries}; a machine that is too busy or "
        "short of memory starts no Python process within Spark's 10 s: let fewer tasks run at a time, e.g. "
        "ps.Spark('local[2]'), or allow more with ps.Spark(restarts=20); the checkpoint is whole"
    )


def _java_runs() -> bool:
    """Whether Spark is still there to start something in."""
    context = SparkContext._active_spark_context
    try:
        return context is not None and not context._jsc.sc().isStopped()
    except Exception:
        return False


def _too_large(text: str) -> str | None:
    """What a batch was too large for; None if nothing says that it was."""
    if found := _RESULTS.search(text):
        return found[0].strip()
    if found := _MEMORY.search(text):
        return f"Spark ran out of memory ({found[0].strip()})"
    if _GONE.search(text):
        status = _java_status()
        if status == _OUT_OF_MEMORY:
            return "Spark's driver ran out of memory and ended"
        if status == _KILLED:
            return "Spark's driver was killed, as a machine does that has no memory left"
    return None


def _java_status() -> int | None:
    """With which status the driver's Java ended; None if it goes on, or was not started from here."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return None
    with contextlib.suppress(subprocess.TimeoutExpired):  # it may be about to end
        return int(process.wait(_END_S))
    return None


def _root(text: str) -> str:
    """The line of a JVM's trace that says what it all began with."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        lines = lines[1:]
    lines = [_STREAM_FAILED.sub("", line) for line in lines]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return causes[-1] if causes else "".join(lines[:1]).lstrip(": ")
