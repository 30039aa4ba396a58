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

# make gpu-check: the tests that need a GPU, with the real driver. They run in a folder that holds
# all they need, so that it can be carried to a machine with a GPU: make gpu-check-kit makes it, and
# build/gpu-check/gpu_check.sh runs it.
GPU_CHECK := $(B)/gpu-check
$(B)/tests/cuda/gpu_check: tests/cuda/gpu_check.c $(LIBFRAG_SO)
	@mkdir -p $(@D) $(B)/obj/tests/cuda
	$(CC) $(ALL_CFLAGS) -MF $(B)/obj/tests/cuda/gpu_check.d $(LIBFRAG_INC) $< $(ALL_LDFLAGS) \
		-L$(B)/lib -lfrag -ldl -Wl,-rpath,'$$ORIGIN/../lib:$$ORIGIN/../../lib' -o $@
tests: $(B)/tests/cuda/gpu_check
.PHONY: gpu-check gpu-check-kit
gpu-check-kit: all $(B)/tests/cuda/gpu_check $(B)/tests/sample_plugins/libgpu.so
	@rm -rf $(GPU_CHECK) && mkdir -p $(addprefix $(GPU_CHECK)/,bin deps libexec/frag \
		lib/frag/modules lib/frag/plugins)
	@cp $(B)/tests/cuda/gpu_check $(addprefix $(B)/bin/,fragctl driverd workerd) \
		$(GPU_CHECK)/bin
	@cp $(B)/libexec/frag/fraghost $(GPU_CHECK)/libexec/frag
	@cp $(LIBFRAG_SO) $(GPU_CHECK)/lib
	@cp $(addprefix $(B)/lib/frag/modules/,cuda.so shm.so) $(GPU_CHECK)/lib/frag/modules
	@cp $(B)/lib/frag/plugins/libbasic.so $(GPU_CHECK)/lib/frag/plugins
	@cp $(B)/tests/sample_plugins/libgpu.so $(GPU_CHECK)/lib
	@cp tests/cuda/gpu_check.sh $(GPU_CHECK)
	@ldd $(GPU_CHECK)/bin/* $(GPU_CHECK)/libexec/frag/* $(GPU_CHECK)/lib/*.so* | \
		awk '$$3 ~ /^\// && $$1 !~ /^lib(c|m|dl|pthread|rt|frag|resolv)\.so/ { print $$3 }' | \
		sort -u | xargs -I{} cp -L {} $(GPU_CHECK)/deps
gpu-check:
	@mk/deps.sh
	@$(MAKE) --no-print-directory -s gpu-check-kit
	@$(GPU_CHECK)/gpu_check.sh
