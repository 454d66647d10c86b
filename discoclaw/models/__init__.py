"""Model providers: each adapter turns one vendor's API into the port `Model`. Imports only core."""
