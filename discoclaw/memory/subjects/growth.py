"""Applies the next record to the branches and views in RAM, without reading the history."""

from discoclaw.core.event import Commit, Record
from discoclaw.core.history import Branches
from discoclaw.core.times import ms_of_iso
from discoclaw.core.view import View


def follows(record: Record, branches: Branches) -> bool:
    """Whether a record comes after those that made `branches`."""
    if ms_of_iso(record.timestamp) <= branches.last_ms:
        return False
    if isinstance(record, Commit):
        known = branches.all.get(record.branch)
        return known is not None and known.head == record.parent_id
    made_again = record.action == "create" and record.branch in branches.all
    return not made_again and record.action not in ("union", "mend")


def applied(
    record: Record, branches: Branches, views: dict[str, View], after: View | None = None
) -> Branches:
    """The branches after the next record; the `views` in RAM are updated too.

    `after` is used as the view with the record if it belongs to that very commit.
    """
    if isinstance(record, Commit):
        if record.branch in views:
            if after is None or after.head != record.id:
                after = views[record.branch].after(record)
            views[record.branch] = after
    elif record.action == "create" and record.branch not in branches.all:
        for view in list(views.values()):
            if view.head == record.head:
                views[record.branch] = view
    elif record.action == "delete":
        views.pop(record.branch, None)
    return branches.after(record)
