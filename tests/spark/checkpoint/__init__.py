"""Tests of penstock.checkpoints."""
