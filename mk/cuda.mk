# SPDX-License-Identifier: Apache-2.0
# The module cuda uses NVIDIA's driver, which it opens at run time, and links nothing of CUDA. With
# a toolkit below CUDA_HOME it is compiled against that cuda.h, else against the same declarations
# in modules/cuda/driver_abi.h, which `make` says.
CUDA_HOME ?= /usr/local/cuda
CUDA_H := $(firstword $(wildcard $(CUDA_HOME)/include/cuda.h /usr/include/cuda.h))
CUDA_H := $(if $(CUDA_H),$(shell awk '$$2 == "CUDA_VERSION" && $$3 >= 12000 { print "$(CUDA_H)"; \
	exit }' $(CUDA_H)))
$(B)/obj/libfrag/modules/cuda/%.o: ALL_CFLAGS += \
	$(if $(CUDA_H),-DFRAG_CUDA_TOOLKIT -isystem $(dir $(CUDA_H)))
ifneq ($(BUILDING),)
$(if $(filter cuda,$(MODULES)),$(if $(CUDA_H),,$(info cuda.so is compiled without a CUDA toolkit, \
	which is not in $(CUDA_HOME) (CUDA_HOME=DIR): with the declarations of frag)))
endif

# The driver of tests (tests/cuda/fake_cuda.h), always with the declarations of frag: so the tests
# show that both are the same.
FAKE_CUDA := $(B)/tests/cuda/libcuda.so.1
$(FAKE_CUDA): tests/cuda/fake_cuda.c
	@mkdir -p $(@D) $(B)/obj/tests/cuda
	$(CC) $(ALL_CFLAGS) -MF $(B)/obj/tests/cuda/fake_cuda.d -shared $(LIBFRAG_INC) -Ilibfrag $< \
		$(ALL_LDFLAGS) -Wl,-soname,libcuda.so.1 -o $@
tests: $(FAKE_CUDA)
$(B)/tests/shared/test_cuda: | $(FAKE_CUDA) $(B)/lib/frag/modules/cuda.so
