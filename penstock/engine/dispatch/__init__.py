"""Who runs next: the dispatcher with a lock and sleepers, and the workers it sends."""
