"""Model providers: each package turns one vendor's API into the port `Model`. Imports only core.

`providers.open_models` is the way in. To add a provider, add its package, a row in `providers.PROVIDERS`
and its name in `core/model` and in `settings_types.ModelProvider`.
"""
