"""From the MIG layouts that cards have to those wanted: what stays, what goes, what is made, in which order."""

from placement.repartition.change import Change as Change
from placement.repartition.change import Holder as Holder
from placement.repartition.change import State as State
from placement.repartition.change import change as change
from placement.repartition.reach import reach as reach
from placement.repartition.record import Blocked as Blocked
from placement.repartition.record import CardChange as CardChange
from placement.repartition.record import Repartition as Repartition
from placement.repartition.record import Step as Step
from placement.repartition.run import repartition as repartition
from placement.repartition.times import Times as Times
