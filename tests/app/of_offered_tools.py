"""Which tools a model is offered in a turn, and the short ids by which it names what it was shown."""

ALL = [
    "memory_search",
    "memory_store",
    "memory_update",
    "memory_forget",
    "memory_recall",
    "memory_add",
    "memory_link",
    "memory_branch",
    "memory_history",
    "memory_consolidate",
]
