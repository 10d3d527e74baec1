"""Complex event processing: patterns, the splitter, detector instances and the merger."""
