"""The register of a repository: its configuration, its documents, and finding them by ID."""
