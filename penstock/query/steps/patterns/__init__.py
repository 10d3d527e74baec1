"""Steps that match patterns and detect in selections, and what runtimes make of them."""
