# SPDX-License-Identifier: Apache-2.0
# make torture [RUNS=n] [RESTART=n] [SERVICE=n] [STREAM=n] [STOP=n] [LINK=n] [SOAK=n]
# [SOAK_SERVICE=seconds] [MANY=n] [STEPS=n] [SEED=s] [LOAD=n]: 20 attacks by default.
.PHONY: torture
torture: all $(TEST_PLUGIN_SO) $(if $(STEPS),$(CONFORMANCE_STEPS))
	@$(if $(STEPS),FRAG_STEP_RUNS=$(STEPS) $(if $(SEED),FRAG_STEP_SEED=$(SEED)) \
		$(CONFORMANCE_STEPS) --filter 'shm_steps/sides_die_at_any_time')
	@FRAG_BUILD=$(abspath $(B)) python3 tests/torture/torture.py $(if $(RUNS),--runs $(RUNS)) \
		$(if $(RESTART),--restart $(RESTART)) \
		$(if $(SERVICE),--service $(SERVICE)) \
		$(if $(STREAM),--stream $(STREAM)) \
		$(if $(STOP),--stop $(STOP)) $(if $(LINK),--link $(LINK)) \
		$(if $(SOAK),--soak $(SOAK)) \
		$(if $(SOAK_SERVICE),--soak-service $(SOAK_SERVICE)) \
		$(if $(MANY),--many $(MANY)) $(if $(SEED),--seed $(SEED)) \
		$(if $(LOAD),--load $(LOAD)) $(if $(V),--verbose)
