"""Records: what a register contains and what a verification yields.

Records are frozen values without behaviour beyond what follows from their own fields. Nothing here reads a
file, parses Markdown or imports torch.
"""
