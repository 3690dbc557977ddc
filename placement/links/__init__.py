"""Which of a node's alike cards each task gets, by the paths between them (`nodes[].links`) and NUMA zones."""

from placement.links.choice import by_links as by_links
from placement.links.scale import set_scores as set_scores
