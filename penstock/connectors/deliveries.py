"""All kinds of deliveries that can be looked at without their app, and how a sink takes up its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from penstock.connectors.delivery import Delivery
from penstock.connectors.files.folder_delivery import FolderDelivery
from penstock.connectors.files.text_delivery import TextDelivery
from penstock.connectors.writer import Resumed
from penstock.query.errors import RunError

Taken = TypeVar("Taken", bound=Delivery)


def delivery_of(plain: Mapping[str, Any]) -> Delivery | None:
    """What a manifest says of one sink; None if it is of a kind that can neither be looked at nor taken back,
    such as a broker's.

    The form tells a file from a folder, whichever the format: also one that is known to the app only.
    """
    if "end_crc32" in plain:
        return TextDelivery.of(plain)
    return FolderDelivery.of(plain) if "contents" in plain else None


def taken_up(resumed: Resumed | None, new: Taken) -> Taken | None:
    """What a sink goes on with that would begin with ``new``, an empty delivery; None: it does begin with it.

    Raises unless all that was delivered is still there, and the sink is where it was.
    """
    delivery, path = check_same_kind(resumed, new.kind), new.path
    if resumed is None or not isinstance(delivery, type(new)):
        return None
    if not delivery.is_at(Path(path)):
        if delivery.is_empty:
            return None
        raise RunError(
            f"cannot go on with '{path}': the checkpoint has delivered {delivery.amount} into "
            f"'{delivery.path}'; give that path, as an absolute one if the working directory changes, or "
            "give the sink another name, and its output begins anew"
        )
    wrong = delivery.check(resumed.batch)
    if wrong is not None:
        raise RunError(
            f"cannot go on with '{path}': {wrong}; bring it back as it was, go back to before it with "
            "'penstock checkpoint rollback', or start from an empty checkpoint"
        )
    return replace(delivery, path=path)


def check_same_kind(resumed: Resumed | None, kind: str) -> Delivery | None:
    """What was delivered, if it can be looked at. Raises if there is some and the sink is another now."""
    if resumed is None or resumed.delivered is None:
        return None
    delivery = delivery_of(resumed.delivered)
    if delivery is None or delivery.kind == kind:
        return delivery
    if delivery.is_empty:
        return None
    raise RunError(
        f"the sink was of kind '{delivery.kind}' and has delivered {delivery.amount} into '{delivery.path}', "
        f"now it is of kind '{kind}': leave it as it was, or give the new one another name"
    )
