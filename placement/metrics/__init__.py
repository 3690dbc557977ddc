"""What a plan means for those who share cards, and a schedule for those who wait; from what is recorded alone."""

from placement.metrics.fairness import Fairness as Fairness
from placement.metrics.fairness import JobRho as JobRho
from placement.metrics.fairness import QueueShare as QueueShare
from placement.metrics.fairness import fairness as fairness
from placement.metrics.mig import MigRoom as MigRoom
from placement.metrics.sharing import CardLoad as CardLoad
from placement.metrics.sharing import Exposure as Exposure
from placement.metrics.sharing import Sharing as Sharing
from placement.metrics.sharing import sharing as sharing
