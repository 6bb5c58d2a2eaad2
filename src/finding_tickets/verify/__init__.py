"""From a ticket's claims to a verdict: plan, isolate, measure, find the laws, check, record."""
