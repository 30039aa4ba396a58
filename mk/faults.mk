# SPDX-License-Identifier: Apache-2.0
# make faults [ROLE=r] [SITE=word] [SAMPLE=n] [DEPTH=n] [SKIP=n] [V=1]: makes every call site in
# frag's code that allocates, writes, opens, forks or maps fail once. failing.so is never
# instrumented, because it intercepts calls before the sanitizers do.
FAULTS_SO := $(B)/tests/faults/failing.so
$(FAULTS_SO): tests/faults/failing.c
	@mkdir -p $(@D) $(B)/obj/tests/faults
	$(CC) -std=gnu11 -O2 -g $(WARN) -fPIC -fvisibility=hidden -fno-omit-frame-pointer -MMD -MP \
		-MF $(B)/obj/tests/faults/failing.d -MT $@ \
		-shared $< -Wl,-z,defs,-z,relro,-z,now -ldl $(into_place)
tests: $(FAULTS_SO)

.PHONY: faults
faults: all $(TEST_PLUGIN_SO) $(FAULTS_SO)
	@FRAG_BUILD=$(abspath $(B)) python3 tests/faults/faults.py $(if $(ROLE),--role $(ROLE)) \
		$(if $(SITE),--site "$(SITE)") \
		$(if $(SAMPLE),--sample $(SAMPLE)) $(if $(DEPTH),--depth $(DEPTH)) \
		$(if $(SKIP),--skip $(SKIP)) $(if $(SANITIZED),--sanitized) $(if $(V),--verbose)
