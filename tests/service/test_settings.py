"""Settings from outside: the command line before the environment before the file before the app itself."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock as ps
from penstock.query.errors import PenstockError
from penstock.service.settings import settings_of

FILE = """
[run]
on = "node"
[node]
workers = 2
tasks = 2
scheduling = "congestion"
[service]
log = "json"
port = 9090
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "penstock.toml"
    path.write_text(FILE)
    return path


def test_what_comes_first(file: Path) -> None:
    environment = {"PENSTOCK_NODE_TASKS": "3", "PENSTOCK_NODE_WORKERS": "3", "PENSTOCK_CACHE": "/elsewhere"}
    settings = settings_of(["node.workers=4"], environment, file)
    runtime = settings.runtime(ps.Node(workers=1, tasks=1, turn_blocks=7))
    assert runtime == ps.Node(workers=4, tasks=3, scheduling="congestion", turn_blocks=7)
    assert settings.service() == ps.Service(log="json", port=9090)


def test_without_settings_the_app_decides() -> None:
    settings = settings_of((), {})
    own = ps.Node(workers=3)
    assert settings.runtime(own) is own
    assert settings.runtime(None) is None
    assert settings.service() == ps.Service(log="text")


def test_another_runtime_than_the_apps(file: Path) -> None:
    runtime = settings_of(["run.on=node", "node.workers=2"], {}).runtime(ps.Spark("local[1]"))
    assert runtime == ps.Node(workers=2)
    runtime = settings_of(["spark.checkpoint=state"], {"PENSTOCK_RUN_ON": "spark"}).runtime(ps.Node())
    assert runtime == ps.Spark(checkpoint="state")


def test_a_token_comes_from_the_environment_as_it_is() -> None:
    settings = settings_of(["service.host=0.0.0.0", "service.port=0"], {"PENSTOCK_SERVICE_TOKEN": "0123"})
    assert settings.service().token == "0123"


@pytest.mark.parametrize(
    ("arguments", "environment", "text", "what"),
    [
        (["node.worker=2"], {}, "", "no setting 'node.worker': .* did you mean 'node.workers'"),
        ([], {"PENSTOCK_NODE_WORKER": "2"}, "", "said by PENSTOCK_NODE_WORKER"),
        (["nodes.workers=2"], {}, "", "no section 'nodes'.* did you mean 'node'"),
        (["workers"], {}, "", "SECTION.NAME=VALUE"),
        (["run.on=cloud"], {}, "", "on must be 'node' or 'spark'"),
        ([], {}, "workers = 2", "outside of a section"),
        ([], {}, "workers == 2", "no TOML"),
        ([], {}, "[service]\ntoken = 'x'", "PENSTOCK_SERVICE_TOKEN"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(
    arguments: list[str], environment: dict[str, str], text: str, what: str, tmp_path: Path
) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(text)
    with pytest.raises(PenstockError, match=what):
        settings_of(arguments, environment, file).runtime(ps.Node())
