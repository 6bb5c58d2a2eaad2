"""From the bytes of a Markdown file to records: blocks and cells with their spans, then what they mean."""
