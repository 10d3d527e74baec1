"""RIoTBench as EdgeWise runs it."""
