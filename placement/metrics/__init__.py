"""What a plan means for those who share cards: from snapshot and plan alone, as in `placement.check`."""

from placement.metrics.mig import MigRoom as MigRoom
from placement.metrics.sharing import CardLoad as CardLoad
from placement.metrics.sharing import Exposure as Exposure
from placement.metrics.sharing import Sharing as Sharing
from placement.metrics.sharing import sharing as sharing
