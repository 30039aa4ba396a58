#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# proof.sh proof|nightly [STEP...]: runs the steps of that run, or those named, one after the other.
# Each writes into build/RUN/STEP.log; build/RUN/table says what each took and found. proof stops at
# the first step that fails, nightly goes on to the end. A step that begins with & runs beside the
# steps that follow, up to a line `join`: it mostly waits, and they only compute.
# @ is a number that follows from the tree of HEAD, so that parts (SHARE) have their turns.
#
# A result belongs to the tree of HEAD: build/passed/TREE/STEP. A step that has passed for this tree
# with this command is not run again, in whichever run, so an interrupted run goes on where it was,
# and a commit that changes no file (a new message, a merge of the same content) invalidates
# nothing. With uncommitted changes nothing is stored and everything runs. FRESH=1 runs everything
# again.
set -eu
cd "$(dirname "$0")/.."
run=${1:-}
# One step per line: NAME COMMAND...
case $run in
proof)
	goal_s=1200
	steps='patches tests/planted/features.py --patches
style make -s lint-style
build make -s tests
clang make -s lint-clang SHARE=@/4
&torture make -s torture RUNS=20 RESTART=20 SERVICE=30 LINK=2 STEPS=300 LOAD=0
sim make -s sim FROM=5401 RUNS=20400
oracle make -s oracle GRAPHS=2000
faults tests/planted/sim.sh wrong_transition timer_not_cancelled epoch_not_compared_worker
instructions make -s bench-instructions
ndebug make -s ndebug SHARE=@/24 ONLY=tests/unit/
join
&call-sites make -s faults
asan env FRAG_TEST_CHANGES=20 FRAG_TEST_SEED=@ make -s asan SHARE=@/16
join
tsan make -s tsan SHARE=@/16'
	;;
nightly)
	goal_s=9000
	steps='patches tests/planted/features.py --patches
lint make -s lint
recipes tests/planted/recipes.sh
builds tests/builds.sh
ndebug env FRAG_TEST_MORE=4 make -s ndebug AGAIN=0
freeze env FREEZES=40 python3 tests/integration/cluster.py test_failures Failing.test_all_frozen
sim make -s sim RUNS=1000000
faults tests/planted/sim.sh
scale make -s scale
oracle make -s oracle GRAPHS=50000
oracle-faults tests/planted/oracle.sh
fuzz make -s fuzz TIME=600
fuzz-coverage make -s fuzz-coverage
planted tests/planted/fuzz.sh
races tests/planted/races.sh
features tests/planted/features.sh 10
people make -s people
vivid make -s vivid
editor make -s editor
page make -s page
perfetto make -s perfetto
site make -s site-check
late env FRAG_LATE=150 python3 tests/run.py --only test_late
paused make -s paused
clocks env FRAG_CLOCKS=100 python3 tests/run.py --tests test_nodes::Clocks.test_drawn_links
python tests/python/proof.sh
python-debug make -s python-debug
asan make -s asan AGAIN=0
call-sites make -s faults
call-sites-asan make -s asan-faults
coverage make -s coverage
mutate make -s mutate COUNT=200 PATIENCE=30
tsan make -s tsan AGAIN=0
criterion make -s criterion
valgrind make -s valgrind
aarch64 make -s aarch64
nodes make -s nodes
limits make -s limits
container make -s container-check
deb-arm64 make -s deb ARCH=arm64
instructions make -s bench-instructions
hostile make -s hostile ATTACK=30 AGAIN=0
torture make -s torture RUNS=1000 RESTART=1000 STREAM=20 STOP=100 LINK=50 SOAK=40 STEPS=10000
service-1 make -s torture SERVICE=250
service-2 make -s torture SERVICE=250
service-3 make -s torture SERVICE=250
service-4 make -s torture SERVICE=250
many make -s torture MANY=200 LOAD=0
soak make -s torture SOAK_SERVICE=1200 LOAD=0
bench make -s bench'
	;;
*)
	echo "usage: mk/proof.sh proof|nightly [STEP...]" >&2
	exit 2
	;;
esac
shift
tree=$(git rev-parse 'HEAD^{tree}' 2>/dev/null) || tree=0
turn=$((0x$(echo "$tree" | cut -c 1-7)))
steps=$(echo "$steps" | sed "s|@|$turn|g")
for word in "$@"; do
	echo "$steps" | grep -q "^&\?$word " || {
		echo "$run: there is no step $word; there are" $(echo "$steps" | cut -d ' ' -f 1 | tr -d '&') >&2
		exit 2
	}
done
only=" $* " failures=0
logs=build/$run
mk/deps.sh "$run"

# The folder for the results of this tree; empty: they are not stored.
passed=
if [ -z "$(git status --porcelain 2>&1)" ]; then
	passed=build/passed/$tree
	mkdir -p "$passed"
fi

# row NAME SECONDS WORDS
row() {
	row=$(printf '%6s s  %-16s %s' "$2" "$1" "$3")
	echo "$row" >>"$logs/table"
	echo "$run: $row"
}

# step NAME COMMAND...: 1 when it failed
step() {
	name=$1
	shift
	log=$logs/$name.log
	if [ -n "$passed" ] && [ -z "${FRESH:-}" ] && [ "$(sed -n 1p "$passed/$name" 2>/dev/null)" = "$*" ]; then
		row "$name" "$(sed -n 2p "$passed/$name")" "$(sed -n 3p "$passed/$name") (passed before)"
		return 0
	fi
	echo "$run: $name: $*"
	begin=$(date +%s)
	if "$@" >"$log" 2>&1; then
		took=$(($(date +%s) - begin))
		[ -z "$passed" ] || printf '%s\n%s\n%s\n' "$*" "$took" "$(tail -n 1 "$log")" >"$passed/$name"
		row "$name" "$took" "$(tail -n 1 "$log")"
		return 0
	fi
	tail -n 60 "$log"
	row "$name" $(($(date +%s) - begin)) "FAILED: $*; its output is in $log"
	return 1
}

is_wanted() {
	[ "$only" = "  " ] || [ "${only#* $1 }" != "$only" ]
}

failed() {
	failures=$((failures + 1))
	[ "$run" = nightly ] || finish
}

# Waits for the step that runs beside the others.
join() {
	[ -n "$beside" ] || return 0
	pid=$beside beside=
	wait "$pid" || failed
}

finish() {
	[ -z "$beside" ] || wait "$beside" || failures=$((failures + 1))
	total_s=$(($(date +%s) - began))
	echo "$run:"
	cat "$logs/table"
	echo "$run: $((total_s / 60)) min $((total_s % 60)) s; the goal is at most $((goal_s / 60)) min on 2 cores"
	if [ "$failures" != 0 ]; then
		echo "$run: $failures failed"
		exit 1
	fi
	echo "$run: all of it passed"
	exit 0
}

mkdir -p "$logs"
: >"$logs/table"
began=$(date +%s) beside=
while read -r name command; do
	case $name in
	join)
		join
		;;
	"&"*)
		if is_wanted "${name#&}"; then
			step "${name#&}" $command </dev/null &
			beside=$!
		fi
		;;
	*)
		! is_wanted "$name" || step "$name" $command </dev/null || failed
		;;
	esac
done <<END
$steps
END
join
finish
