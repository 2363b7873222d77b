"""Computes the page of a group: its offsets and lag from the bucket, its members from brokers."""

from bucketlog.console.brokers_page import group_members
from bucketlog.console.groups import committed_rows
from bucketlog.console.page_query import PageQuery, table_page
from bucketlog.console.pages import Console, UnknownNameError, Values


def group(console: Console, query: PageQuery) -> Values:
    view = console.look()
    name = query.text("name")
    rows = view.state.groups.get(name)
    if rows is None:
        raise UnknownNameError(
            f"no group {name[:249]!r} has committed offsets", remedy="choose one on the page Groups"
        )
    names = {key: view.state.topics[key.topic_id].name for key in rows}
    page = table_page(
        list(rows),
        query,
        {"topic": lambda key: (names[key], key.partition)},
        filter_text=lambda key: names[key],
        rows_max=console.settings.page_rows_max,
    )
    members, members_error = group_members(console, view, name)
    return {
        "view": view,
        "name": name,
        "members": members,
        "members_error": members_error,
        "page": page,
        "rows": committed_rows(view, name, page.rows, console.now_ms()),
        "summary": next(row for row in console.groups(view) if row.name == name),
    }
