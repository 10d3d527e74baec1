"""Tests of the house itself: sizes, declarations, what is printed."""
