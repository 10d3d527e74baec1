"""The process whose start is measured: makes an app, runs it on a node, and says what was compiled."""

from __future__ import annotations

import json
import sys
from typing import Any


def main(name: str) -> dict[str, Any]:
    """Runs an app by name; the rows that it gave, and what was compiled in how many milliseconds."""
    if name == "traffic":
        rows = _traffic()
    else:
        import penstock as ps
        from lab.bench.start.apps import APPS

        rows = APPS[name]().run(on=ps.Node(workers=2)).metrics.written
    from penstock.compiled import cache
    from penstock.compiled.notice import notice

    compiled = sorted(notice.times_s.items(), key=lambda item: -item[1])
    return {
        "compiled": {kernel: round(1000 * seconds, 1) for kernel, seconds in compiled},
        "loaded": cache.counts.loaded,
        "rows": rows,
    }


def _traffic() -> int:
    from lab.bench.start.bench import QUERIES
    from penstock.demo import traffic_app
    from penstock.engine.node import Node
    from penstock.workloads.traffic.settings import TrafficSettings
    from penstock.workloads.traffic.source import Traffic

    app = traffic_app(QUERIES, Traffic(TrafficSettings(cars=20_000), seconds=0.04))
    return Node(workers=2).run(app.graph()).metrics.written


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
