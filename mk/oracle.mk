# SPDX-License-Identifier: Apache-2.0
# The oracle of the schedulers: random graphs under greedy and under event_based with 1, 2 and 8
# threads (tests/oracle). make oracle GRAPHS=n checks n graphs, from where the last call with this
# program was interrupted; SEED=n checks one graph; make oracle-faults shows that it finds planted
# faults.
ORACLE_OBJ := $(patsubst tests/oracle/%.c,$(B)/obj/tests/oracle/%.o, \
	$(filter-out tests/oracle/main.c tests/oracle/test_%.c,$(wildcard tests/oracle/*.c)))
ORACLE_BIN := $(B)/tests/oracle/oracle
ORACLE_TEST := $(B)/tests/oracle/test_oracle
ORACLE_SO := $(B)/tests/oracle/liboracle.so

$(B)/obj/tests/oracle/%.o: tests/oracle/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LIBFRAG_INC) -c $< -o $@
$(ORACLE_BIN): $(B)/obj/tests/oracle/main.o $(ORACLE_OBJ) $(LIBFRAG_A)
	@mkdir -p $(@D)
	@rm -f $(B)/oracle.progress
	$(CC) $(ALL_LDFLAGS) -rdynamic $^ -lyaml -ldl -lm $(into_place)
$(ORACLE_TEST): $(B)/obj/tests/oracle/test_oracle.o $(ORACLE_OBJ) $(CRITERION) $(LIBFRAG_A)
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) -rdynamic $^ -lyaml -ldl -lm $(into_place)
$(ORACLE_SO): $(B)/obj/tests/oracle/node.o $(LIBFRAG_SO)
	@mkdir -p $(@D)
	$(CC) -shared $< $(ALL_LDFLAGS) -L$(B)/lib -lfrag \
		-Wl,-rpath,'$$ORIGIN/../../lib' $(into_place)
TEST_BIN += $(ORACLE_TEST)
tests: $(ORACLE_BIN) $(ORACLE_SO)

.PHONY: oracle oracle-faults
oracle: $(ORACLE_BIN)
	@$(ORACLE_BIN) $(if $(SEED),--seed $(SEED),--graphs $(or $(GRAPHS),2000) --jobs $$(nproc) \
		--progress $(B)/oracle.progress)
oracle-faults:
	@tests/planted/oracle.sh
