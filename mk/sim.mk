# SPDX-License-Identifier: Apache-2.0
# The simulator: the cores of the daemons on a virtual clock and network. make sim SEED=n writes one
# history, make sim RUNS=n [FROM=seed] runs n histories; make sim-faults shows that it finds planted
# faults.
SIM_SRC := $(wildcard tests/sim/*.c)
SIM_CORES := $(patsubst %.c,$(B)/obj/%.o, \
	$(wildcard driverd/core/*.c driverd/core/*/*.c workerd/core/*.c workerd/host/core/*.c))
SIM_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(filter-out tests/sim/main.c tests/sim/test_%.c,$(SIM_SRC)))
SIM_BIN := $(B)/tests/sim/sim
SIM_TEST := $(B)/tests/sim/test_sim
SIM_LIBS = -lyaml $(PROTOBUF_LIBS) -ldl -lm

$(B)/obj/tests/sim/%.o: tests/sim/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(DAEMON_INC) -c $< -o $@
$(SIM_BIN): $(B)/obj/tests/sim/main.o $(SIM_OBJ) $(SIM_CORES) $(WIRE_A) $(LIBFRAG_A)
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) $^ $(SIM_LIBS) $(into_place)
$(SIM_TEST): $(B)/obj/tests/sim/test_sim.o $(SIM_OBJ) $(SIM_CORES) $(CRITERION) $(WIRE_A) \
	$(LIBFRAG_A)
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) $^ $(SIM_LIBS) $(into_place)
TEST_BIN += $(SIM_TEST) $(SIM_BIN)

# sim_histories N: seeds in a row have each kind of history by its share (tests/sim/kind.c).
sim_histories = $(SIM_BIN) --jobs $$(nproc) $(if $(FROM),--from $(FROM)) --runs $(1)

.PHONY: sim sim-faults
sim: $(SIM_BIN)
	@$(if $(SEED),$(SIM_BIN) --seed $(SEED),$(call sim_histories,$(or $(RUNS),10800)))
sim-faults:
	@tests/planted/sim.sh

# What an event costs the driver with ever more workers: the cores again, on a network without
# faults.
SCALE_OBJ := $(patsubst %.c,$(B)/obj/%.o, \
	$(filter-out tests/scale/main.c tests/scale/test_%.c,$(wildcard tests/scale/*.c)))
SCALE_BIN := $(B)/tests/scale/scale
SCALE_TEST := $(B)/tests/scale/test_scale
$(B)/obj/tests/scale/%.o: tests/scale/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(DAEMON_INC) -c $< -o $@
$(SCALE_BIN): $(B)/obj/tests/scale/main.o $(SCALE_OBJ) $(SIM_CORES) $(WIRE_A) $(LIBFRAG_A)
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) $^ $(SIM_LIBS) $(into_place)
$(SCALE_TEST): $(B)/obj/tests/scale/test_scale.o $(SCALE_OBJ) $(SIM_CORES) $(WIRE_A) \
	$(CRITERION) $(LIBFRAG_A)
	@mkdir -p $(@D)
	$(CC) $(ALL_LDFLAGS) $^ $(SIM_LIBS) $(into_place)
TEST_BIN += $(SCALE_TEST) $(SCALE_BIN)

# Without asserts, as packages are built: some of them walk through all that there is.
.PHONY: scale
scale:
	@$(MAKE) --no-print-directory -s B=build-ndebug NDEBUG=1 build-ndebug/tests/scale/scale
	@build-ndebug/tests/scale/scale 100 1000 3
	@build-ndebug/tests/scale/scale one 250 2500 4 8
