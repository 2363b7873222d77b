"""The broker: connections, dispatch, produce and fetch paths, background duties."""
