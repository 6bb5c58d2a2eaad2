"""Finding tickets that are closed by measurement."""

from finding_tickets.ground.version import __version__ as __version__
