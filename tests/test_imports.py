"""What imports what; the directions between packages are in pyproject.toml (`lint-imports`)."""

from graphlib import TopologicalSorter

import grimp


def test_no_modules_import_each_other_in_a_circle_even_for_types_alone() -> None:
    graph = grimp.build_graph("discoclaw", cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    order = [*TopologicalSorter(imports).static_order()]  # raises CycleError, which names the circle
    assert len(order) > 200
