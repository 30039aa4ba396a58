# SPDX-License-Identifier: Apache-2.0
# The control connections: generated protobuf code, framing and codec. They use libfrag's base only.
WIRE_INC := -Iproto -I$(B)/gen $(LIBFRAG_INC)
WIRE_SRC := $(wildcard proto/wire/*.c)
WIRE_PROTO := $(wildcard proto/frag/v1/*.proto)
WIRE_GEN := $(WIRE_PROTO:proto/%.proto=$(B)/gen/%.pb-c.c)
# Who creates an fw_tls needs these too.
TLS_LIBS = $(eval TLS_LIBS := $$(shell $$(PKG_CONFIG) --libs libssl libcrypto))$(TLS_LIBS)
WIRE_A := $(B)/obj/libwire.a
.SECONDARY: $(WIRE_GEN) $(WIRE_GEN:.c=.h)

$(B)/gen/%.pb-c.c: proto/%.proto
	@mkdir -p $(@D)
	protoc-c --proto_path=proto --c_out=$(B)/gen $<

$(B)/obj/gen/%.o: $(B)/gen/%.c $(WIRE_GEN)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(CFLAGS) -fPIC -I$(B)/gen -c $< -o $@

$(B)/obj/proto/%.o: proto/%.c $(WIRE_GEN)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(WIRE_INC) -c $< -o $@

ifneq ($(WIRE_SRC),)
$(WIRE_A): $(WIRE_SRC:%.c=$(B)/obj/%.o) $(WIRE_GEN:$(B)/%.c=$(B)/obj/%.o)
	rm -f $@ && $(AR) rcs $@ $^
all: $(WIRE_A)
endif
