"""Tests of turns and of what sources say."""
