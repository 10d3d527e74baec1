"""RIoTBench: four topologies over messages of city sensors, with the operators of an edge box."""

from lab.workloads.riot.settings import RiotSettings
from lab.workloads.riot.topologies import INSTANCES, TOPOLOGIES, input_of, topology

__all__ = ["INSTANCES", "TOPOLOGIES", "RiotSettings", "input_of", "topology"]
