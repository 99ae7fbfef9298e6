"""A calculation that crashes on one of its items."""

import json

ITEMS = json.loads(
    '[{"name": "tea", "price": 3}, {"name": "cup", "price": "4"}, {"name": "pot", "price": 20}]'
)


def total(items: list[dict[str, int]]) -> int:
    result = 0
    for item in items:
        result += item["price"]
    return result


print(total(ITEMS))
