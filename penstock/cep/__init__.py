"""Complex event processing: patterns in streams, how they are matched and how streams are split for it."""
