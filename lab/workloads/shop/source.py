"""The shop's events as a source."""

from __future__ import annotations

from lab.workloads.shop.data import FIELDS, VOCABULARY, ShopEvents, ShopSettings
from penstock.connectors.memory.generator import Generator
from penstock.connectors.pacing import Rate
from penstock.query.types import Schema

EVENT_TIME = "ts"


def shop_source(
    settings: ShopSettings, limit: int | None = None, rate: Rate | None = None, partitions: int = 1
) -> Generator:
    """The events of these settings, ``limit`` of them, at ``rate`` events a second.

    >>> shop_source(ShopSettings(), limit=10).schema.names
    ('user_id', 'item_id', 'category_id', 'behaviour', 'ts')
    """
    return Generator(
        ShopEvents(settings).fill,
        Schema.of(dict(FIELDS)),
        limit=limit,
        rate=rate,
        vocabulary=VOCABULARY,
        partitions=partitions,
    )
