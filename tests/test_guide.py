"""The examples of the user guide run, in order, as one program."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

GUIDE = Path(__file__).parent.parent / "docs" / "guide.md"


def test_the_guides_examples_run() -> None:
    text = GUIDE.read_text()
    names: dict[str, Any] = {"__name__": "guide"}
    blocks = list(re.finditer(r"```python\n(.*?)```", text, re.DOTALL))
    assert len(blocks) > 8
    for block in blocks:
        # as many empty lines as stand before it, so that errors name the guide's own lines
        lines_before = text.count("\n", 0, block.start(1))
        exec(compile("\n" * lines_before + block.group(1), str(GUIDE), "exec"), names)
