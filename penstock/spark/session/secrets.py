"""Who may connect to Spark: secrets for local masters and our own clusters, and how they stay secret.

What passes on a command line can be read by every user of the machine. So a secret is in a file of its owner,
or goes from this process into the JVM that is running already.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
from pyspark import SparkConf, SparkContext

from penstock.spark.session.callbacks import close_to_others
from penstock.spark.session.defaults import set_elsewhere
from penstock.spark.session.errors import SparkError
from penstock.state.files import create_folder

AUTHENTICATE = "spark.authenticate"
SECRET = "spark.authenticate.secret"
CLUSTER_VARIABLE = "PENSTOCK_CLUSTER"
DEFAULT_FOLDER = Path(".penstock-cluster")
CLUSTER_STATE = "cluster.json"
_PROPERTIES = "secret.conf"
_MASTER_CLASS = "org.apache.spark.deploy.master.Master"
_FILTER = "org.apache.spark.ui.JWSFilter"
_SECRET_NAMES = re.compile(r"secret|password|token|access[.]?key", re.IGNORECASE)  # as Spark redacts them
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_KEY_IN_HADOOP = "sparkCookie"  # where Spark looks for the secret before it looks into its settings


@dataclass(frozen=True)
class ClusterSecret:
    """The secret of a cluster of ours, in its folder: whoever can read it may run code as the cluster's
    owner."""

    folder: Path
    secret: str

    @classmethod
    def create(cls, folder: Path) -> ClusterSecret:
        """Makes a new one. The folder, which is created, becomes its owner's alone."""
        create_folder(folder)
        if folder.stat().st_uid != os.geteuid():
            raise SparkError(
                "the cluster's folder belongs to another user",
                detail=f"'{folder}' has the logs and the secret of the cluster",
                hint="name another one: --folder PATH",
            )
        folder.chmod(0o700)
        made = cls(folder, secrets.token_hex(32))
        path = cls.file_in(folder)
        path.unlink(missing_ok=True)  # of another mode, perhaps
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            key = base64.urlsafe_b64encode(made._ui_key).decode()
            file.write(f"{AUTHENTICATE} true\n{SECRET} {made.secret}\n")
            file.write(f"spark.ui.filters {_FILTER}\nspark.{_FILTER}.param.secretKey {key}\n")
        return made

    @classmethod
    def of(cls, folder: Path) -> ClusterSecret | None:
        """The one in a folder; None if there is none, or if another user could have put it there."""
        try:
            descriptor = os.open(cls.file_in(folder), os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            return None
        with open(descriptor) as file:
            info = os.fstat(descriptor)
            if info.st_uid != os.geteuid() or info.st_mode & _OTHERS:
                return None
            settings = dict(line.split(" ", 1) for line in file.read().splitlines())
        secret = settings.get(SECRET)
        return None if secret is None else cls(folder, secret)

    @staticmethod
    def file_in(folder: Path) -> Path:
        """The file from which the cluster's processes get it."""
        return folder / _PROPERTIES

    @property
    def ui_token(self) -> str:
        """What a request to the cluster's pages must have with it: a signed token (JWS)."""
        head, body = _encoded(b'{"alg":"HS256"}'), _encoded(b'{"sub":"penstock"}')
        signature = hmac.new(self._ui_key, f"{head}.{body}".encode(), hashlib.sha256).digest()
        return f"{head}.{body}.{_encoded(signature)}"

    @property
    def _ui_key(self) -> bytes:
        return hashlib.sha256(f"pages {self.secret}".encode()).digest()

    def remove(self) -> None:
        self.file_in(self.folder).unlink(missing_ok=True)


def secret_of(master: str) -> ClusterSecret | None:
    """The secret of this user's cluster with that master; None if there is none on this machine."""
    for folder in _cluster_folders():
        try:
            state = json.loads((folder / CLUSTER_STATE).read_text())
        except (OSError, ValueError):
            continue
        if isinstance(state, dict) and state.get("master") == master:
            secret = ClusterSecret.of(folder)
            if secret is not None:
                return secret
    return None


def authentication(master: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The settings by which nobody without the secret may connect to the driver or pass for the master.

    Of a local master Spark makes a secret of its own, which never leaves its process. A standalone one must
    have the app's; other kinds of cluster have their own ways.
    """
    if settings.get(AUTHENTICATE, "").lower() == "false":
        return {}
    if master.startswith("local"):
        return {AUTHENTICATE: "true"}
    if not master.startswith("spark://"):
        return {}
    known = {**set_elsewhere(), **settings}
    if SECRET in known:
        return {AUTHENTICATE: "true", SECRET: known[SECRET]}
    own = secret_of(master)
    if own is None:
        raise SparkError(
            "no secret for the Spark master is known",
            detail=f"without one, whoever reaches the ports of {master} or of this app can run code as their "
            "users",
            hint=f"set {SECRET} in conf/spark-defaults.conf or settings=, to what the master has; "
            f"for a cluster of 'penstock cluster up' set {CLUSTER_VARIABLE} to its folder; for a master "
            f'without authentication, where you trust the whole network, write settings={{"{AUTHENTICATE}": '
            '"false"}',
        )
    return {AUTHENTICATE: "true", SECRET: own.secret}


def is_secret(name: str) -> bool:
    """Whether a setting must not be seen by others.

    >>> is_secret("spark.authenticate.secret"), is_secret("spark.authenticate")
    (True, False)
    """
    return _SECRET_NAMES.search(name) is not None


def start_java(settings: Mapping[str, str]) -> None:
    """Starts the JVM if there is none, without secrets on its command line; they follow when it runs."""
    visible = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        if not is_secret(name):
            visible.set(name, value)
    is_new = SparkContext._gateway is None
    SparkContext._ensure_initialized(conf=visible)
    if is_new and SparkContext._gateway is not None:
        close_to_others(SparkContext._gateway)
    if SECRET in settings:
        # An earlier session in this JVM may have left the secret of another master there.
        jvm = SparkContext._jvm
        assert jvm is not None
        hadoop = jvm.org.apache.hadoop
        credentials = hadoop.security.Credentials()
        credentials.addSecretKey(hadoop.io.Text(_KEY_IN_HADOOP), settings[SECRET].encode())
        hadoop.security.UserGroupInformation.getCurrentUser().addCredentials(credentials)


def _cluster_folders() -> Iterator[Path]:
    """Where a cluster of this user's may have been brought up, the likely ones first."""
    if chosen := os.environ.get(CLUSTER_VARIABLE):
        yield Path(chosen)
    yield DEFAULT_FOLDER
    for process in psutil.process_iter():
        try:
            if process.uids().effective != os.geteuid():
                continue
            words = process.cmdline()
        except psutil.Error:
            continue
        if _MASTER_CLASS in words and "--properties-file" in words[:-1]:
            yield Path(words[words.index("--properties-file") + 1]).parent


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
