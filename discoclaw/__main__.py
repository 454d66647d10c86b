"""`python -m discoclaw` is the console script `discoclaw`."""

from discoclaw.cli.start import main

if __name__ == "__main__":
    main()
