"""The words for what the machine measured; they live in ``model.vocabulary``."""

from finding_tickets.model.vocabulary import BEST_FIRST, Verdict

__all__ = ["BEST_FIRST", "Verdict"]
