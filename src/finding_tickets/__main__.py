"""``tickets``, also as ``python -m finding_tickets``."""

import sys

# As ``ExitCode`` has it, which is still to be loaded.
INTERRUPTED = 130


def main() -> None:
    """Run ``tickets``; an interrupt ends it without a word, also while it is being loaded."""
    try:
        from finding_tickets.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
