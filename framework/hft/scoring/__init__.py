"""Queue models against what really happened to real orders; see docs/queue-score.md."""

from hft.scoring.ghosts import Options
from hft.scoring.queues import Score, score_queues

__all__ = ["Options", "Score", "score_queues"]
