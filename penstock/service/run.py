"""Runs the file of an app as a service: ``penstock run app.py``."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.app import App, Runtime, launched
from penstock.query.errors import PenstockError
from penstock.service.settings import FILE, OutsideSettings, settings_of


class FileLaunch:
    """Whoever runs an app inside ``launched`` runs it as the settings say."""

    def __init__(self, settings: OutsideSettings) -> None:
        self._settings, self.service = settings, settings.service()
        self.runs = 0

    def runtime(self, own: Runtime[Any] | None) -> Runtime[Any] | None:
        """What to run on, where the app itself says ``own``."""
        self.runs += 1
        return self._settings.runtime(own)


def run_file(
    file: Path,
    arguments: Sequence[str] = (),
    settings: Sequence[str] = (),
    config: Path | None = None,
) -> int:
    """Runs a file as Python would; an app in it that it does not run itself is run then.

    Returns the exit code; whatever goes wrong is raised.
    """
    beside = file.parent / FILE
    launch = FileLaunch(settings_of(settings, file=config or (beside if beside.exists() else None)))
    if not file.is_file():
        raise PenstockError(f"there is no file '{file}'; write penstock run app.py")
    sys.argv[:] = [str(file), *arguments]
    sys.path.insert(0, str(file.parent.absolute()))
    with launched(launch):
        names = runpy.run_path(str(file), run_name="__main__")
        if not launch.runs:
            app_in(names, file).run()
    return 0


def app_in(names: Mapping[str, Any], file: Path) -> App:
    """The one app among the names that a file has given."""
    apps = [value for value in names.values() if isinstance(value, App)]
    if len(apps) == 1:
        return apps[0]
    raise PenstockError(
        f"'{file}' runs no app, and has {len(apps) or 'none'} to run; write app = ps.App('name') or app.run()"
    )
