"""Files that are created once only on HDFS, by Hadoop's client."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from penstock.state.files import Folder


@dataclass(frozen=True)
class HadoopRename:
    """Creates files by Hadoop's client in the driver: written whole under another name, then renamed without
    replacing.

    HDFS's name node does that in one step. pyarrow's client for HDFS cannot: it removes a file that is there.
    """

    session: SparkSession
    root: str  # its scheme and authority are those of all folders

    def __call__(self, folder: Folder, name: str, data: Any) -> bool:
        jvm, gateway = self.session._jvm, SparkContext._gateway
        assert jvm is not None
        assert gateway is not None
        hadoop = jvm.org.apache.hadoop.fs
        address = urlsplit(self.root)
        base = f"{address.scheme}://{address.netloc}{urlsplit(folder.path).path}"
        temporary, final = (hadoop.Path(f"{base}/{file}") for file in (f"tmp-{uuid4().hex}-{name}", name))
        configuration = self.session._jsparkSession.sessionState().newHadoopConf()
        files = hadoop.FileContext.getFileContext(final.toUri(), configuration)
        with_parents = gateway.new_array(hadoop.Options.CreateOpts, 1)
        with_parents[0] = hadoop.Options.CreateOpts.createParent()
        stream = files.create(temporary, jvm.java.util.EnumSet.of(hadoop.CreateFlag.CREATE), with_parents)
        try:
            stream.write(bytes(data))
            stream.hsync()
        finally:
            stream.close()
        try:
            files.rename(temporary, final, gateway.new_array(hadoop.Options.Rename, 0))
        except Py4JJavaError as error:
            with contextlib.suppress(Py4JJavaError):
                files.delete(temporary, False)
            if "FileAlreadyExistsException" in str(error.java_exception):
                return False
            raise
        return True
