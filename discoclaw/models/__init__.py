"""Model providers: each package turns one vendor's API into the port `Model`. Imports only core.

`providers.open_models` is the way in. docs/dev/adding.md says how to add a provider.
"""
