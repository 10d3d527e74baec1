"""Tests of penstock.cep.patterns."""
