"""A discrete-event simulator with a virtual clock that drives the same scheduling and binding decisions."""
