# SPDX-License-Identifier: Apache-2.0
# Unit tests: one Criterion program a file of tests/unit, linked with the objects of libfrag.
UNIT_SRC := $(wildcard tests/unit/*.c)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(B)/tests/unit/%)

$(B)/tests/unit/%: tests/unit/%.c $(if $(WIRE_SRC),$(WIRE_A)) $(LIBFRAG_A)
	@mkdir -p $(@D) $(B)/obj/tests/unit
	$(CC) $(ALL_CFLAGS) -MF $(B)/obj/tests/unit/$*.d -Itests $(WIRE_INC) -I. $(filter-out %.h,$^) $(ALL_LDFLAGS) -rdynamic -lcriterion -lyaml $(UV_LIBS) $(PROTOBUF_LIBS) -ldl -lm -o $@

.PHONY: tests unit
tests: all $(UNIT_BIN)
unit: $(UNIT_BIN)
	@for t in $(UNIT_BIN); do echo $$t; $$t || exit 1; done
