"""How much longer a job runs the wider its tasks lie, where nothing else is known of it: a default, from measurements.

Three public sets of measurements say what a job loses that is spread over nodes and does not lie within one. For each,
the geometric mean of how many times as long a step takes:

================================================================== ===== =============
measured                                                           pairs times as long
================================================================== ===== =============
Chronus (SoCC'21): five image models, 2 to 8 cards on two nodes       20          1.29
Gavel (OSDI'20): 2 to 8 cards (K80, P100, V100), spread or not       165          1.53
Pollux (OSDI'21): six models, 2 to 4 cards (T4) on two nodes         215          1.68
================================================================== ===== =============

The geometric mean of the three is 1.49, so 1.5 is taken for one level wider than a node. Within each set they lie far
apart. Gavel's K80 lose next to nothing (1.02) and its V100 most (2.26): the faster the card, the more of the time is
the network's. Half of Chronus' pairs lose less than 7 %, and the worst (alexnet, 6 cards) takes 3.0 times as long.
Nobody tells levels of switches apart. What stands for all wider levels is that Chronus' jobs of 4 and 8 cards take 1.36
times as long on four nodes as on two (10 pairs): 1.49 times 1.36 is 2.0. All of it is data-parallel training over
Ethernet; who knows better states `placement.snapshot.Duration.levels`.

Sources: ``placement_slowdown`` of S-Lab-System-Group/ChronusArtifact (MIT), ``simulation_throughputs.json`` of
stanford-futuredata/gavel (MIT), and the placement measurements of petuum/adaptdl, branch osdi21-artifact (Apache-2.0).
"""

from __future__ import annotations

from fractions import Fraction

BY_LEVELS_WIDER = (Fraction(1), Fraction(3, 2), Fraction(2))
"""Factor on the run time of a job within one node, within the next wider level, and wider."""


def usual(wider: int) -> Fraction:
    """Return the factor on the run time of a job that lies so many levels wider than one node."""
    return BY_LEVELS_WIDER[min(wider, len(BY_LEVELS_WIDER) - 1)]
