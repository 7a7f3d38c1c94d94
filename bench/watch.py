#!/usr/bin/env python3
"""Runs a command and writes its exit status and the peak of its resident memory in bytes: `watch.py FILE LIMIT COMMAND …`.

A process of its own because a child's peak begins with that of the process that started it: this one stays small.
"""

import json
import os
import signal
import subprocess
import sys


def main():
    report, limit = sys.argv[1], float(sys.argv[2])
    process = subprocess.Popen(sys.argv[3:])
    signal.signal(signal.SIGALRM, lambda *_: process.kill())
    signal.alarm(max(1, int(limit)))
    _, status, usage = os.wait4(process.pid, 0)
    with open(report, "w", encoding="utf-8") as file:
        json.dump({"status": os.waitstatus_to_exitcode(status), "peak": usage.ru_maxrss * 1024}, file)


if __name__ == "__main__":
    main()
