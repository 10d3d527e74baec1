"""Tests of lab.brokers."""
