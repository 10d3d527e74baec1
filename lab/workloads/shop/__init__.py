"""A shop's user behaviour (ms-stream 7.1): views and purchases of items, some of which are much in demand."""
