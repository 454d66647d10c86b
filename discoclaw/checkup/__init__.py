"""What `discoclaw init` and `discoclaw doctor` look at, a module for each subject. Nothing changes anything."""
