"""How many examples a property is tried with here: they touch a real disk."""

from hypothesis import HealthCheck, settings

MODEST = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
FEW = settings(MODEST, max_examples=25)
