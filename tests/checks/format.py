#!/usr/bin/env python3
"""Every C++ file is as clang-format 14 writes it.

    format.py ROOT [--fix]      exit code 77 (skipped) when there is no clang-format 14
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

import house


def main():
    root = Path(sys.argv[1]).resolve()
    for name in ("clang-format-14", "clang-format"):
        if shutil.which(name):
            version = subprocess.run([name, "--version"], capture_output=True, text=True).stdout
            if re.search(r"version 14\.", version):
                break
    else:
        print("skipped: there is no clang-format 14 (its formatting differs from version to version)")
        return 77
    paths = [str(path) for path in house.files(root, "include", "src", "examples", "bench", "tests")]
    if "--fix" in sys.argv:
        return subprocess.run([name, "-i", *paths]).returncode
    result = subprocess.run([name, "--dry-run", "--Werror", *paths], capture_output=True, text=True)
    files = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", result.stderr, re.M)))
    print("\n".join([f"{file}: not as clang-format writes it" for file in files] +
                    ["(tests/checks/format.py . --fix puts it right)"]) if files else f"{len(paths)} files in order")
    return 1 if files or result.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
