"""Which binding when: the figures of local operator rebinding, simulated and measured."""
