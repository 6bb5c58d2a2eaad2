"""What people and programs read of a register: entries, reports and exports."""
