"""The taxi trips: plausible, consistent within a trip, and independent of how reads are cut."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lab.workloads.taxi.data import FIELDS, VOCABULARY, TaxiSettings, TaxiTrips

Columns = dict[str, NDArray[Any]]
DTYPES = {"string": np.int32, "int32": np.int32, "timestamp": np.int64, "float64": np.float64}

# The benchmark's grid: 600 × 600 cells of 250 m.
NORTH, WEST = 41.474937, -74.913583
CELL_NORTH_DEG, CELL_EAST_DEG = 0.002245778, 0.002993


def read(settings: TaxiSettings, offset: int, *lengths: int) -> Columns:
    columns: Columns = {name: np.zeros(sum(lengths), DTYPES[kind]) for name, kind in FIELDS}
    trips = TaxiTrips(settings)
    start = 0
    for n in lengths:
        trips.fill(offset + start, n, columns, start)
        start += n
    return columns


def assert_same(left: Columns, right: Columns) -> None:
    for name, _ in FIELDS:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)


def cells(columns: Columns, end: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    down = np.floor((NORTH - columns[f"{end}_latitude"]) / CELL_NORTH_DEG).astype(np.int64)
    right = np.floor((columns[f"{end}_longitude"] - WEST) / CELL_EAST_DEG).astype(np.int64)
    return down, right


def valid(columns: Columns, end: str) -> NDArray[np.bool_]:
    down, right = cells(columns, end)
    inside: NDArray[np.bool_] = (down >= 0) & (down < 600) & (right >= 0) & (right < 600)
    return inside


@pytest.fixture(scope="module")
def trips() -> Columns:
    return read(TaxiSettings(seed=1, events_per_second=5), 0, 400_000)


@given(
    st.integers(0, 2**48),
    st.lists(st.integers(0, 50), min_size=1, max_size=8),
    st.integers(1, 2_000_000),
    st.sampled_from([0, 5_000_000]),
)
def test_trips_do_not_depend_on_how_reads_are_cut(
    offset: int, lengths: list[int], rate: int, disorder_us: int
) -> None:
    settings = TaxiSettings(seed=2, events_per_second=rate, disorder_us=disorder_us)
    assert_same(read(settings, offset, *lengths), read(settings, offset, sum(lengths)))


def test_a_seed_decides_everything_random() -> None:
    assert_same(read(TaxiSettings(seed=5), 10, 100), read(TaxiSettings(seed=5), 10, 100))
    other = read(TaxiSettings(seed=6), 10, 100)
    assert (read(TaxiSettings(seed=5), 10, 100)["medallion"] != other["medallion"]).mean() > 0.9


def test_indices_lie_in_their_vocabulary(trips: Columns) -> None:
    for name, kind in FIELDS:
        if kind == "string":
            assert trips[name].min() == 0
            assert trips[name].max() == len(VOCABULARY[name]) - 1
            assert len(set(VOCABULARY[name])) == len(VOCABULARY[name])


def test_each_vendor_has_about_half_of_the_trips(trips: Columns) -> None:
    assert abs((trips["vendor_id"] == VOCABULARY["vendor_id"].index("VTS")).mean() - 0.5) < 0.01


def test_distances_are_like_those_of_new_york(trips: Columns) -> None:
    miles = trips["trip_distance"]
    assert 1.6 < np.median(miles) < 2.1
    assert 2.3 < miles.mean() < 3.2
    assert 0.7 < (miles > 1).mean() < 0.9
    assert miles.min() > 0
    logs = np.log(miles[miles < 8])
    assert abs(((logs - logs.mean()) ** 3).mean() / logs.std() ** 3) < 0.5


def test_pickups_cluster_in_manhattan_and_at_the_airports(trips: Columns) -> None:
    lat, lon = trips["pickup_latitude"], trips["pickup_longitude"]
    manhattan = (abs(lat - 40.755) < 0.06) & (abs(lon + 73.98) < 0.05)
    assert 0.80 < manhattan.mean() < 0.95
    at_jfk = (abs(lat - 40.645) < 0.02) & (abs(lon + 73.783) < 0.02)
    assert 0.01 < at_jfk.mean() < 0.03
    assert np.median(trips["trip_distance"][at_jfk]) > 10


def test_a_few_cells_are_invalid(trips: Columns) -> None:
    assert abs((~(valid(trips, "pickup") & valid(trips, "dropoff"))).mean() - 0.015) < 0.002
    none = read(TaxiSettings(invalid_share=0), 0, 100_000)
    assert valid(none, "pickup").all()
    assert valid(none, "dropoff").all()


def test_a_trip_adds_up(trips: Columns) -> None:
    parts = ("fare_amount", "surcharge", "mta_tax", "tip_amount", "tolls_amount")
    np.testing.assert_allclose(trips["total_amount"], sum(trips[name] for name in parts))
    took_us = trips["dropoff_datetime"] - trips["pickup_datetime"]
    np.testing.assert_array_equal(took_us // 1_000_000, trips["trip_time_in_secs"])
    assert (took_us % 1_000_000 == 0).all()
    miles_per_hour = trips["trip_distance"] / trips["trip_time_in_secs"] * 3600
    assert miles_per_hour.min() > 1
    assert miles_per_hour.max() < 45
    assert np.corrcoef(trips["trip_distance"], trips["fare_amount"])[0, 1] > 0.95
    assert (trips["tip_amount"][trips["payment_type"] != VOCABULARY["payment_type"].index("CRD")] == 0).all()


def test_surcharges_follow_the_hour(trips: Columns) -> None:
    hour = trips["dropoff_datetime"] // 3_600_000_000 % 24
    np.testing.assert_array_equal(trips["surcharge"][(hour >= 6) & (hour < 16)], 0)
    np.testing.assert_array_equal(trips["surcharge"][(hour >= 16) & (hour < 20)], 1)
    np.testing.assert_array_equal(trips["surcharge"][(hour >= 20) | (hour < 6)], 0.5)


def test_dropoffs_come_in_order_by_default(trips: Columns) -> None:
    assert (np.diff(trips["dropoff_datetime"]) == 200_000).all()


@given(st.integers(0, 2**40), st.integers(1, 10_000_000))
def test_disorder_is_bounded(offset: int, disorder_us: int) -> None:
    ordered = read(TaxiSettings(events_per_second=1000), offset, 200)["dropoff_datetime"]
    settings = TaxiSettings(events_per_second=1000, disorder_us=disorder_us)
    late_us = ordered - read(settings, offset, 200)["dropoff_datetime"]
    assert late_us.min() >= 0
    assert disorder_us / 2 <= late_us.max() + 1
    assert late_us.max() <= disorder_us


@pytest.mark.parametrize(
    ("field", "value"), [("events_per_second", 0), ("disorder_us", -1), ("invalid_share", 1.5)]
)
def test_settings_out_of_range_are_refused(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{field} must .* taxi got {value}"):
        TaxiSettings(**{field: value})  # type: ignore[arg-type]
