"""What calls of models used and cost: counted, written down, and kept within budgets."""
