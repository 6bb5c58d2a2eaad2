"""Run code in processes of their own: the server that forks them, the sandbox, what they are seen to do."""
