#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# proof.sh: the wheel as a newcomer gets it: builds it, installs it into a new environment, runs the
# first example of docs/PYTHON.md; then all tests with numpy, the examples under mypy --strict, the
# extension under abi3audit, and the time of `import frag`.
set -eu
cd "$(dirname "$0")/../.."
make -s python
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
pip="$folder/env/bin/pip --disable-pip-version-check install --quiet"
$pip dist/frag-*.whl

tests/python/first_example.sh >"$folder/hello.py"
printed=$(cd "$folder" && env -i env/bin/python hello.py)
[ "$printed" = "$(printf 'hello 10\nhello 11\nhello 12')" ] || {
	echo "python: the first example printed: $printed" >&2
	exit 1
}

python3 tests/python/import_time.py "$folder/env/bin/python" 30

$pip --require-hashes --no-deps --only-binary=:all: -r tests/python/requirements.txt
# From elsewhere, so that the installed package is used.
for name in tests examples; do
	case $name in
	tests) from=tests/python ;;
	examples) from=examples/python ;;
	esac
	cp -r "$from" "$folder/$name"
done
(cd "$folder/tests" && "$folder/env/bin/python" -m pytest -q -p no:cacheprovider)
(cd "$folder/examples" && "$folder/env/bin/python" -m pytest -q -p no:cacheprovider &&
	"$folder/env/bin/python" smooth.py && "$folder/env/bin/python" -m mypy --strict ./*.py)
"$folder/env/bin/abi3audit" --strict dist/frag-*.whl
echo "python: the wheel holds"
