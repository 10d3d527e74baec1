"""The laboratory: what measures, models and compares Penstock. The package never imports it."""
