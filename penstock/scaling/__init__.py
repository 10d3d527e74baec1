"""Degree: how many instances a detector needs so that its queue keeps a limit. Pure decisions only."""
