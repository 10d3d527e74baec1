"""How the figures of all benchmarks are finished and written."""

from __future__ import annotations

from pathlib import Path

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

_DPI = 120


def saved(figure: Figure, title: str | None, path: Path) -> str:
    """Writes a figure, in a folder that need not be there yet, and closes it; returns where it is."""
    if title is not None:
        figure.suptitle(title)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=_DPI)
    plt.close(figure)
    return str(path)
