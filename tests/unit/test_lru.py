"""The LRU cache: what it keeps, what it evicts, and what is too heavy for it."""

from hypothesis import given
from hypothesis import strategies as st

from bucketlog.log_format.lru import LruCache


def test_what_was_used_least_recently_gives_way() -> None:
    evicted: list[str] = []
    cache: LruCache[str, int] = LruCache(2, on_evicted=evicted.append)
    cache.keep("a", 1)
    cache.keep("b", 2)
    assert cache.find("a") == 1
    cache.keep("c", 3)
    assert evicted == ["b"]
    assert cache.find("b") is None
    assert ("a" in cache, "b" in cache, "c" in cache) == (True, False, True)


def test_looking_whether_a_key_is_there_is_not_a_use() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache.keep("a", 1)
    cache.keep("b", 2)
    assert "a" in cache
    cache.keep("c", 3)
    assert "a" not in cache


def test_what_is_heavier_than_the_bound_is_not_kept_and_drives_nothing_out() -> None:
    evicted: list[str] = []
    cache: LruCache[str, int] = LruCache(10, on_evicted=evicted.append)
    cache.keep("a", 1, 6)
    cache.keep("b", 2, 11)
    assert (cache.find("a"), cache.find("b"), cache.weight) == (1, None, 6)
    cache.keep("a", 3, 11)
    assert (cache.find("a"), cache.weight, evicted) == (None, 0, [])


@given(
    st.integers(0, 20),
    st.lists(
        st.tuples(st.sampled_from(["keep", "find", "forget"]), st.integers(0, 8), st.integers(0, 9))
    ),
)
def test_it_agrees_with_a_list(bound: int, steps: list[tuple[str, int, int]]) -> None:
    """The list has the keys and weights, the least recently used first."""
    model: list[tuple[int, int]] = []
    cache: LruCache[int, int] = LruCache(bound)
    for verb, key, weight in steps:
        found = next((entry for entry in model if entry[0] == key), None)
        rest = [entry for entry in model if entry[0] != key]
        match verb:
            case "keep":
                cache.keep(key, weight, weight)
                model = [*rest, (key, weight)] if weight <= bound else rest
                while sum(each for _, each in model) > bound:
                    del model[0]
            case "find":
                assert cache.find(key) == (found[1] if found else None)
                model = [*rest, found] if found else rest
            case "forget":
                cache.forget(key)
                model = rest
        assert cache.weight == sum(each for _, each in model)
        assert [key in cache for key in range(9)] == [key in dict(model) for key in range(9)]
