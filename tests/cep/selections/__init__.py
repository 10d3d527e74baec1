"""Tests of penstock.cep.selections."""
