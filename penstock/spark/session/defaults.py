"""What the user has set for Spark outside of the program: in its file of defaults, and in the environment."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pyspark

DRIVER_MEMORY = "spark.driver.memory"


def set_elsewhere() -> dict[str, str]:
    """All settings in ``spark-defaults.conf`` and in the environment, as Spark would take them."""
    settings: dict[str, str] = {}
    for line in _lines():
        name, *value = line.split("#")[0].replace("=", " ", 1).split(None, 1)
        if value:
            settings[name] = value[0].strip()
    if memory := os.environ.get("SPARK_DRIVER_MEMORY"):
        settings[DRIVER_MEMORY] = memory
    arguments = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    for place, argument in enumerate(arguments):
        following = arguments[place + 1] if place + 1 < len(arguments) else ""
        if argument == "--driver-memory":
            settings[DRIVER_MEMORY] = following
        elif argument.startswith("--driver-memory="):
            settings[DRIVER_MEMORY] = argument.partition("=")[2]
        elif argument == "--conf":
            name, _, text = following.partition("=")
            settings[name] = text
    return settings


def _lines() -> list[str]:
    home = os.environ.get("SPARK_HOME") or os.path.dirname(pyspark.__file__)
    folder = os.environ.get("SPARK_CONF_DIR") or os.path.join(home, "conf")
    try:
        lines = Path(folder, "spark-defaults.conf").read_text().splitlines()
    except OSError:
        return []
    return [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
