"""An object store that speaks S3's protocol, over a temporary folder: S3Proxy, from Maven's jars."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from lab.brokers.java import jars_of, java_program
from lab.brokers.server import Server, free_ports, is_open


@dataclass(frozen=True)
class ObjectStore:
    """A store that runs, with a bucket; ``environment`` is what its clients must be told."""

    bucket: str
    environment: Mapping[str, str]


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """A running store with one empty bucket; all that is in it is gone afterwards."""
    java, jars = java_program(), jars_of("s3proxy")
    folder = Path(tempfile.mkdtemp(prefix="penstock-objects-"))
    (port,), password, bucket = free_ports(1), token_hex(12), "bucket"
    (folder / "objects" / bucket).mkdir(parents=True)
    settings = {
        "s3proxy.authorization": "aws-v2-or-v4",
        "s3proxy.endpoint": f"http://127.0.0.1:{port}",
        "s3proxy.identity": "penstock",
        "s3proxy.credential": password,
        "jclouds.provider": "filesystem-nio2",
        "jclouds.identity": "unused",
        "jclouds.credential": "unused",
        "jclouds.filesystem.basedir": str(folder / "objects"),
    }
    (folder / "settings").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    command: list[str | Path] = [
        java,
        "-XX:TieredStopAtLevel=1",
        "-Xmx256m",
        "-DLOG_LEVEL=warn",
        "-cp",
        f"{jars}/*",
    ]
    command += ["org.gaul.s3proxy.Main", "--properties", folder / "settings"]
    try:
        server = Server("S3Proxy", command, folder / "log")
        try:
            server.wait_for(lambda: is_open(port))
            yield ObjectStore(
                bucket,
                {
                    "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
                    "AWS_ACCESS_KEY_ID": "penstock",
                    "AWS_SECRET_ACCESS_KEY": password,
                    "AWS_REGION": "us-east-1",
                },
            )
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
