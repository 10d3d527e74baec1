"""One Spark session for all tests of this folder; ``tests/conftest.py`` sends them to one worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from penstock.spark.session.start import spark_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = str(tmp_path_factory.mktemp("spark"))
    settings = {
        "spark.sql.warehouse.dir": folder,
        # a short life on few cores: the quick compiler only, and no threads for collecting garbage; but as
        # much room for code as without that, for all tests share this Java
        "spark.driver.extraJavaOptions": (
            "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
        ),
    }
    session = spark_session("local[2]", "penstock-tests", settings)
    yield session
    session.stop()
