"""One ledger for each subject, and the views of it: the only writer of history."""
