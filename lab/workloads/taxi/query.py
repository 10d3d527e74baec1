"""The New York taxi query: trips and mean distance per pickup cell and two seconds (enjima 5.1.1)."""

from __future__ import annotations

from penstock.query.aggregates import avg, count
from penstock.query.expr import Expr, col, when
from penstock.query.stream.stream import Stream
from penstock.query.windows import tumbling

CELLS = 600
# 250 m cells counted from the north-western corner of the grid.
NORTH, WEST = 41.474937, -74.913583
CELL_LATITUDE, CELL_LONGITUDE = 0.002245778, 0.002993


def cell(longitude: str, latitude: str) -> Expr:
    """The number of the grid cell that a position lies in, row by row; negative outside of the grid."""
    row = ((NORTH - col(latitude)) / CELL_LATITUDE).floor()
    column = ((col(longitude) - WEST) / CELL_LONGITUDE).floor()
    inside = row.between(0, CELLS - 1) & column.between(0, CELLS - 1)
    return when(inside, row * CELLS + column).otherwise(-1)


def distance_per_cell(trips: Stream) -> Stream:
    """source → map to cells → filter → tumbling window per pickup cell."""
    return (
        trips.select(
            "dropoff_datetime",
            "vendor_id",
            "trip_distance",
            pickup_cell=cell("pickup_longitude", "pickup_latitude"),
            dropoff_cell=cell("dropoff_longitude", "dropoff_latitude"),
        )
        .filter(
            (col("vendor_id") == "VTS")
            & (col("trip_distance") > 1)
            & (col("pickup_cell") >= 0)
            & (col("dropoff_cell") >= 0)
        )
        .key_by("pickup_cell")
        .window(tumbling("2s"))
        .agg(trips=count(), distance=avg("trip_distance"))
    )
