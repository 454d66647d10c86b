"""What `discoclaw init` and `doctor` look at, a module for each subject. Nothing here changes anything."""
