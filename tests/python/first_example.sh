#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# first_example.sh: prints the first example of docs/PYTHON.md, as a newcomer copies it.
awk '/^```python/ {on = 1; next} /^```/ {exit_now = on; on = 0} exit_now {exit} on' \
	"$(dirname "$0")/../../docs/PYTHON.md"
