"""MIG cards while they are being filled: what is on each, as states, and the free runs of slots they leave."""

from placement.mig.slots import Board as Board
from placement.mig.slots import Slots as Slots
