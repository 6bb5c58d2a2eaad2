"""Run code in processes of their own: the server that forks them, and which files they use."""
