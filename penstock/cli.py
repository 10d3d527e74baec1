"""The command line: ``penstock run APP``, ``warm APP``, ``demo``, ``cluster up``, ``checkpoint show``."""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from penstock.query.errors import PenstockError, RunError
from penstock.query.extras import Extra, needed


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; a user's mistake is one line on standard error and exit code 2, of a run that has
    failed 1."""
    parsed = _parser().parse_args(arguments)
    try:
        return int(parsed.command(parsed))
    except PenstockError as error:
        print(f"penstock: {error}", file=sys.stderr)
        return 1 if isinstance(error, RunError) else 2
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="penstock", description="Adaptive stream processing for many queries."
    )
    parser.add_argument("--version", action="version", version=f"penstock {version('penstock')}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    _add_run(commands.add_parser("run", help="run the app of a file as a service"))

    demo = commands.add_parser("demo", help="many traffic queries over one stream of cars, with a live view")
    demo.add_argument("--queries", type=_positive, default=150)
    demo.add_argument("--cars", type=_positive, default=20_000)
    demo.add_argument("--seconds", type=float, default=30.0, help="of traffic, in real time")
    demo.add_argument("--on", default="spark", choices=["spark", "node"], help="the runtime")
    demo.add_argument("--master", default="local[*]", help="Spark's master")
    demo.add_argument("--workers", type=int, default=0, help="threads on a node; 0 means one per core")
    demo.set_defaults(command=_demo)

    warm = commands.add_parser("warm", help="compile what an app needs, without running it")
    warm.add_argument("file", type=Path, nargs="?", help="a Python file that makes an app, and may run it")
    warm.add_argument("arguments", nargs=argparse.REMAINDER, help="handed to the file")
    warm.set_defaults(command=_warm)

    _add_bench(commands.add_parser("bench", help="run a benchmark and its baselines"))
    _add_cluster(commands.add_parser("cluster", help="a Spark cluster on this machine, to try things on"))
    _add_checkpoint(commands.add_parser("checkpoint", help="look at a checkpoint, go back, copy it"))
    return parser


def _add_run(run: argparse.ArgumentParser) -> None:
    run.add_argument("file", type=Path, help="a Python file that makes an app, and may run it")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="handed to the file")
    run.add_argument("--on", choices=["node", "spark"], help="the runtime")
    run.add_argument("--port", type=int, help="of /metrics, /health and /ready; 0 takes a free one")
    run.add_argument("--host", help="of these pages; loopback unless given, and another one needs a token")
    run.add_argument("--log", choices=["text", "json"], help="how logs are written to standard error")
    run.add_argument(
        "--config", type=Path, help="settings as TOML; penstock.toml beside the file unless given"
    )
    run.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SECTION.NAME=VALUE",
        help="one setting: node.workers=2",
    )
    run.set_defaults(command=_run)


def _add_bench(bench: argparse.ArgumentParser) -> None:
    """The benchmarks' arguments. They stand beside the package, in a clone: what is installed has none."""
    try:
        laboratory = import_module("lab.bench.command")
    except ModuleNotFoundError:
        bench.add_argument("name", nargs=argparse.REMAINDER)
        bench.set_defaults(command=_no_laboratory)
    else:
        laboratory.add_arguments(bench)


def _no_laboratory(parsed: argparse.Namespace) -> int:
    raise PenstockError(
        "benchmarks are not part of the installed package: they need a clone of the project; "
        "there, 'make setup' installs what they need"
    )


def _add_checkpoint(checkpoint: argparse.ArgumentParser) -> None:
    actions = checkpoint.add_subparsers(required=True, metavar="ACTION")
    show = actions.add_parser("show", help="versions, steps with their state, positions, sinks")
    show.add_argument("--json", action="store_true", help="print JSON")
    show.set_defaults(command=_checkpoint_show)
    verify = actions.add_parser("verify", help="check every checksum; the exit code is 1 if one is wrong")
    verify.set_defaults(command=_checkpoint_verify)
    rollback = actions.add_parser("rollback", help="go back to a version, with the files of sinks")
    rollback.add_argument("--to", type=int, required=True, metavar="VERSION", help="one that 'show' lists")
    rollback.add_argument("--group", type=int, help="which group, of a checkpoint that has some")
    rollback.add_argument(
        "--leave-sinks", action="store_true", help="also if some sinks cannot go back: they get rows again"
    )
    rollback.set_defaults(command=_checkpoint_rollback)
    copy = actions.add_parser("copy", help="copy the newest version, while a run goes on")
    diff = actions.add_parser(
        "diff", help="what an app would go on with; the exit code is 1 if state is lost"
    )
    diff.add_argument("app", type=Path, help="the app's file, which is not run further than to its app.run()")
    diff.set_defaults(command=_checkpoint_diff)
    for action in (show, verify, rollback, copy, diff):
        action.add_argument("checkpoint", help="the folder or address that runs are given")
    copy.add_argument("target", help="a folder that is not there")
    copy.set_defaults(command=_checkpoint_copy)


def _add_cluster(cluster: argparse.ArgumentParser) -> None:
    actions = cluster.add_subparsers(required=True, metavar="ACTION")
    up = actions.add_parser("up", help="start a master and workers; returns when they are ready")
    up.add_argument("--workers", type=_positive, default=2)
    up.add_argument("--cores", type=_positive, default=1, help="of each worker")
    up.add_argument("--memory", default="1g", help="of each worker, for executors: 512m, 2g")
    up.add_argument("--hosts", default="127.0.0.1", help="loopback addresses, on which workers take turns")
    up.set_defaults(command=_cluster_up)
    down = actions.add_parser("down", help="end what 'up' started, and nothing else")
    down.set_defaults(command=_cluster_down)
    status = actions.add_parser("status", help="say what runs; the exit code is 1 if something does not")
    status.set_defaults(command=_cluster_status)
    for action in (up, down, status):
        action.add_argument(
            "--folder", type=Path, default=Path(".penstock-cluster"), help="logs, work folders and state"
        )


def _run(parsed: argparse.Namespace) -> int:
    from penstock.service.run import run_file

    named = {"run.on": parsed.on}
    named |= {f"service.{name}": getattr(parsed, name) for name in ("port", "host", "log")}
    settings = [f"{name}={value}" for name, value in named.items() if value is not None]
    return run_file(parsed.file, parsed.arguments, [*parsed.set, *settings], parsed.config)


def _demo(parsed: argparse.Namespace) -> int:
    with needed(Extra.VIEW, "the demo's view"):
        from penstock.demo import run_demo

    run_demo(parsed.on, parsed.queries, parsed.cars, parsed.seconds, parsed.workers, parsed.master)
    return 0


def _warm(parsed: argparse.Namespace) -> int:
    from penstock.warm import warm

    print(warm(parsed.file, parsed.arguments))
    return 0


def _cluster_up(parsed: argparse.Namespace) -> int:
    with needed(Extra.SPARK, "a Spark cluster"):
        from penstock.spark.session.cluster import LocalCluster

    hosts = parsed.hosts.split(",")
    cluster = LocalCluster(
        parsed.folder, workers=parsed.workers, cores=parsed.cores, memory=parsed.memory, hosts=hosts
    )
    print("starting", file=sys.stderr)
    state = cluster.up()
    print(f"{state}\n\nTo run an app on it:\n    {state.python()}")
    return 0


def _cluster_down(parsed: argparse.Namespace) -> int:
    with needed(Extra.SPARK, "a Spark cluster"):
        from penstock.spark.session.cluster import LocalCluster

    state = LocalCluster(parsed.folder).down()
    print(f"no cluster is up in '{parsed.folder}'" if state is None else f"{state.master} is down")
    return 0


def _cluster_status(parsed: argparse.Namespace) -> int:
    with needed(Extra.SPARK, "a Spark cluster"):
        from penstock.spark.session.cluster import LocalCluster

    state = LocalCluster(parsed.folder).state()
    print(f"no cluster is up in '{parsed.folder}'" if state is None else state)
    return 0 if state is not None and all(member.runs for member in state.members) else 1


def _checkpoint_show(parsed: argparse.Namespace) -> int:
    from penstock.checkpoints.contents import contents_of

    parts = contents_of(parsed.checkpoint)
    if parsed.json:
        print(json.dumps([part.plain() for part in parts], indent=1))
    else:
        print("\n\n".join(part.text() for part in parts))
    return 0


def _checkpoint_verify(parsed: argparse.Namespace) -> int:
    from penstock.checkpoints.verification import problems_of

    problems = problems_of(parsed.checkpoint)
    print("\n".join(problems) or f"'{parsed.checkpoint}' is whole, and so is what its sinks have delivered")
    return 1 if problems else 0


def _checkpoint_rollback(parsed: argparse.Namespace) -> int:
    from penstock.checkpoints.rollback import roll_back

    went_back = roll_back(parsed.checkpoint, parsed.to, group=parsed.group, leave_sinks=parsed.leave_sinks)
    print(went_back.text())
    return 0


def _checkpoint_diff(parsed: argparse.Namespace) -> int:
    from penstock.service.upgrade import upgrade_of

    upgrade = upgrade_of(parsed.app, parsed.checkpoint)
    print(upgrade.text())
    return 1 if upgrade.drops_state else 0


def _checkpoint_copy(parsed: argparse.Namespace) -> int:
    from penstock.checkpoints.copying import copy

    print(copy(parsed.checkpoint, parsed.target).text())
    return 0


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1: got {text}")
    return value


if __name__ == "__main__":
    sys.exit(main())
