# SPDX-License-Identifier: Apache-2.0
# make mutate [COUNT=n] [SEED=n] [ROOM="edge sched"] [JOBS=n] [MUTANTS="id id"] [BY=regex]
# [STAGE=build|judge]: plants small mistakes by rule and prints those that no test notices
# (docs/TESTING.md, "Mutants").
MUTATE_MAKE = $(MAKE) --no-print-directory -s -j$$(nproc) B=build CC='$(CC)' \
	EXTRA_CFLAGS='-O0 -g0' EXTRA_LDFLAGS=-Wl,-S
.PHONY: mutate
mutate:
	@mk/deps.sh
	@python3 tests/mutate/mutate.py --plain "$(MUTATE_MAKE)" --asan '$(ASAN_MAKE)' \
		--tsan '$(TSAN_MAKE)' --count $(or $(COUNT),200) \
		$(if $(SEED),--seed $(SEED)) $(if $(ROOM),--room "$(ROOM)") \
		$(if $(JOBS),--jobs $(JOBS)) $(if $(MUTANTS),--only $(MUTANTS)) \
		$(if $(PATIENCE),--patience $(PATIENCE)) $(if $(KEEP_MAP),--keep-map) \
		$(if $(SECONDS),--seconds $(SECONDS)) $(if $(BUILDS),--builds "$(BUILDS)") \
		$(if $(BY),--programs '$(BY)') $(if $(STAGE),--stage $(STAGE)) \
		$(if $(LIST),--list)
