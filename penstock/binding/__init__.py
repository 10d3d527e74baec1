"""Binding: which thread owns which operator, and how that is changed live. Pure: no clock, no thread."""
