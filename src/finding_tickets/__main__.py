"""``python -m finding_tickets`` is ``tickets``."""

from finding_tickets.cli.main import main

if __name__ == "__main__":
    main()
