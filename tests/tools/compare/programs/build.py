"""A build of 20 minutes that asks a question after 8 and fails; a minute lasts a second."""

import sys
import time

SOURCES = 2000
STEP_S = 20 / SOURCES

for number in range(1, SOURCES + 1):
    print(f"[{number:4}/{SOURCES}] cc -O2 -c source/part{number % 37}/module{number}.c", flush=True)
    if number % 60 == 0:
        print(f"source/part{number % 37}/module{number}.c:{number % 90}: warning: unused variable")
    if number == SOURCES * 8 // 20:
        input("build/cache is of another version. Overwrite? [y/N] ")
    if number == SOURCES * 14 // 20:
        print("source/part5/decode.c:88: error: undefined symbol 'frame_size'", flush=True)
    time.sleep(STEP_S)
print("build failed: 1 of 2000 steps")
sys.exit(2)
