"""The date that a timestamp falls on in UTC, by the Gregorian calendar without end in both directions."""

from __future__ import annotations

from numba import int64, njit

_DAY_US = 86_400_000_000


@njit(error_model="numpy")
def civil_year(time_us):  # type: ignore[no-untyped-def]
    """The year."""
    era, day_of_era = _day_of_era(time_us)
    year_of_era, day_of_year = _day_of_year(day_of_era)
    return 400 * era + year_of_era + (1 if day_of_year >= 306 else 0)


@njit(error_model="numpy")
def civil_month(time_us):  # type: ignore[no-untyped-def]
    """The month, 1 to 12."""
    _, day_of_era = _day_of_era(time_us)
    _, day_of_year = _day_of_year(day_of_era)
    month = (5 * day_of_year + 2) // 153  # from March on
    return month + 3 if month < 10 else month - 9


@njit(error_model="numpy")
def civil_day(time_us):  # type: ignore[no-untyped-def]
    """The day of the month, 1 to 31."""
    _, day_of_era = _day_of_era(time_us)
    _, day_of_year = _day_of_year(day_of_era)
    month = (5 * day_of_year + 2) // 153
    return day_of_year - (153 * month + 2) // 5 + 1


@njit(error_model="numpy")
def _day_of_era(time_us):  # type: ignore[no-untyped-def]
    """Eras of 400 years and the day in one; a year begins with March, so that a leap day is its last."""
    days = time_us // int64(_DAY_US) + 719_468
    era = days // 146_097
    return era, days - 146_097 * era


@njit(error_model="numpy")
def _day_of_year(day_of_era):  # type: ignore[no-untyped-def]
    year = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    return year, day_of_era - (365 * year + year // 4 - year // 100)
