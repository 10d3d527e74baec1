"""Events and results inside the process: columns, generators, callbacks, the terminal."""
