"""A cache that nothing is ever removed from."""

import os
import time

cache: dict[int, bytes] = {}


def answer(question: int) -> int:
    cache[question] = b"x" * 300_000
    return question


print(f"cache: pid {os.getpid()}", flush=True)
number = 0
while True:
    answer(number)
    number += 1
    if number % 100 == 0:
        print(f"answered {number}, cache has {len(cache)} entries", flush=True)
    time.sleep(0.002)
