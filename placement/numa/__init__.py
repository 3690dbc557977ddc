"""What each task takes of the NUMA zones of its node: CPU, memory and NICs (`nodes[].zones`)."""

from placement.numa.columns import Columns as Columns
from placement.numa.columns import in_zones as in_zones
from placement.numa.columns import without_zones as without_zones
