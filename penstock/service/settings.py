"""Settings of a run from outside of its code: the command line, then the environment, then a file."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.query.errors import PenstockError
from penstock.query.extras import Extra, needed
from penstock.service.service import Service

if TYPE_CHECKING:
    from penstock.app import Runtime

#: The file beside an app that is read unless another is named.
FILE = "penstock.toml"

_PREFIX = "PENSTOCK_"
_RUNTIMES = ("node", "spark")
_SECTIONS = ("run", *_RUNTIMES, "service")
_RUN = ("on",)


@dataclass(frozen=True)
class OutsideSetting:
    """One value, and where it was said."""

    value: Any
    where: str


@dataclass(frozen=True)
class OutsideSettings:
    """Settings by section: ``run``, ``node``, ``spark``, ``service``."""

    sections: Mapping[str, Mapping[str, OutsideSetting]] = field(default_factory=dict)

    def runtime(self, own: Runtime[Any] | None) -> Runtime[Any] | None:
        """What to run on: what the app itself says, where nothing here says otherwise."""
        kind = self._kind(own)
        section = self.sections.get(kind or "", {})
        if kind is None or (own is not None and kind == _kind_of(own) and not section):
            return own
        made = _runtime(kind)
        known = [one.name for one in fields(made)]
        values = {name: _checked(setting, kind, name, known) for name, setting in section.items()}
        begun: Any = own if own is not None and kind == _kind_of(own) else made()
        runtime: Runtime[Any] = replace(begun, **values) if values else begun
        return runtime

    def service(self) -> Service:
        """What the run tells. Without a word logs are text."""
        section = self.sections.get("service", {})
        known = [one.name for one in fields(Service)]
        values = {name: _checked(setting, "service", name, known) for name, setting in section.items()}
        return Service(**{"log": "text", **values})

    def _kind(self, own: Runtime[Any] | None) -> str | None:
        section = self.sections.get("run", {})
        for name, setting in section.items():
            _checked(setting, "run", name, _RUN)
        if "on" in section:
            said = section["on"]
            if said.value not in _RUNTIMES:
                raise PenstockError(f"on must be 'node' or 'spark': got {said.value!r} from {said.where}")
            return str(said.value)
        if own is not None:
            return _kind_of(own)
        return "spark" if self.sections.get("spark") else None


def settings_of(
    arguments: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> OutsideSettings:
    """The settings of arguments ``section.name=value``, then of the environment, then of a file."""
    sections: dict[str, dict[str, OutsideSetting]] = {}
    said = [*_of_file(file), *_of_environment(os.environ if environment is None else environment)]
    for section, name, setting in [*said, *_of_arguments(arguments)]:  # the last one counts
        if section not in _SECTIONS:
            raise _unknown("section", section, setting, _SECTIONS)
        sections.setdefault(section, {})[name] = setting
    return OutsideSettings(sections)


def _of_file(file: Path | None) -> Iterable[tuple[str, str, OutsideSetting]]:
    if file is None:
        return
    try:
        read = tomllib.loads(file.read_text())
    except OSError as error:
        raise PenstockError(f"the settings cannot be read: '{file}': {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise PenstockError(f"the settings are no TOML: '{file}': {error}") from None
    for section, values in read.items():
        if not isinstance(values, dict):
            raise PenstockError(
                f"a setting stands outside of a section: '{section}' in '{file}'; "
                f"sections are {', '.join(f'[{one}]' for one in _SECTIONS)}"
            )
        for name, value in values.items():
            if (section, name) == ("service", "token"):
                raise PenstockError(
                    f"a token does not belong into a file: '{file}'; set PENSTOCK_SERVICE_TOKEN instead"
                )
            yield section, name, OutsideSetting(value, f"'{file}'")


def _of_environment(environment: Mapping[str, str]) -> Iterable[tuple[str, str, OutsideSetting]]:
    for variable, text in sorted(environment.items()):
        section, _, name = variable.removeprefix(_PREFIX).lower().partition("_")
        if variable.startswith(_PREFIX) and section in _SECTIONS and name:
            secret = (section, name) == ("service", "token")
            yield section, name, OutsideSetting(text if secret else _value(text), variable)


def _of_arguments(arguments: Iterable[str]) -> Iterable[tuple[str, str, OutsideSetting]]:
    for argument in arguments:
        place, equals, text = argument.partition("=")
        section, dot, name = place.partition(".")
        if not (equals and dot and name):
            raise PenstockError(f"a setting is SECTION.NAME=VALUE: got {argument!r}; e.g. node.workers=2")
        yield section, name, OutsideSetting(_value(text), f"the argument {place}")


def _value(text: str) -> Any:
    """A number, a boolean, a list or a table as TOML writes it; anything else is text."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    return value if isinstance(value, bool | int | float | list | dict) else text


def _checked(setting: OutsideSetting, section: str, name: str, known: Iterable[str]) -> Any:
    if name not in known:
        raise _unknown("setting", f"{section}.{name}", setting, [f"{section}.{one}" for one in known])
    return setting.value


def _unknown(what: str, name: str, setting: OutsideSetting, known: Iterable[str]) -> PenstockError:
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    meant = f"did you mean '{close[0]}'? " if close else ""
    return PenstockError(
        f"there is no {what} '{name}': said by {setting.where}; {meant}there are {', '.join(names)}"
    )


def _kind_of(runtime: Runtime[Any]) -> str:
    return type(runtime).__name__.lower()


def _runtime(kind: str) -> Any:
    if kind == "node":
        from penstock.engine.node import Node

        return Node
    with needed(Extra.SPARK, "on = 'spark'", "say on = 'node'"):
        from penstock.spark.runtime import Spark

    return Spark
