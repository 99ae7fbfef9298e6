"""A service whose log has 10 MB of debug lines, and one cause among them."""

import time

for number in range(180_000):
    clock = f"2026-01-30T10:{number // 3600 % 60:02}:{number // 60 % 60:02}"
    print(f"{clock} DEBUG request {number} took {number % 97} ms: ok")
    if number == 71_234:
        print(
            "2026-01-30T10:19:47 WARN  pool: "
            "connection 7 returned with an open transaction by billing.close_month"
        )
print("2026-01-30T10:59:59 ERROR all 8 connections are busy", flush=True)
time.sleep(3600)
