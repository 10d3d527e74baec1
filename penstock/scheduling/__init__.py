"""Scheduling: which operator runs next, and on how many events. Pure: no clock, no thread."""
