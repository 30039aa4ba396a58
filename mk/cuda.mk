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

# The kernels of built-in operators (libfrag/ops/*/*.cu) are compiled to PTX, which the driver
# compiles for the GPU that it finds. -fmad=false: results as on the CPU. The PTX is that of CUDA
# 11.0, which all drivers know that frag runs with; ptxas checks that it asks for nothing newer.
# used_bytes_mask is a newer hint for ptxas, which changes no result.
NVCC := $(if $(CUDA_H),$(firstword $(wildcard $(CUDA_HOME)/bin/nvcc /usr/bin/nvcc)))
PTXAS := $(if $(NVCC),$(wildcard $(dir $(NVCC))ptxas))
NVCC := $(if $(PTXAS),$(NVCC))
PTX_VERSION := 7.0
CUDA_ARCH := 75
$(B)/gen/%.ptx: %.cu
	@mkdir -p $(@D)
	$(NVCC) -ptx -arch=compute_$(CUDA_ARCH) -O3 -fmad=false -MD -MP -MT $@ -MF $@.d -o $@.new $<
	sed -e 's/^\.version .*/.version $(PTX_VERSION)/' -e '/\.pragma "used_bytes_mask/d' $@.new >$@
	$(PTXAS) -w -arch=sm_$(CUDA_ARCH) -o /dev/null $@
	@rm $@.new
-include $(wildcard $(B)/gen/libfrag/ops/*/*.ptx.d $(B)/gen/tests/*/*.ptx.d)
ifneq ($(NVCC),)
CONVERT_PTX := $(B)/gen/libfrag/ops/vision/convert.ptx
$(B)/obj/libfrag/ops/vision/convert_gpu.o: ALL_CFLAGS += -DFRAG_CONVERT_PTX='"$(CONVERT_PTX)"'
$(B)/obj/libfrag/ops/vision/convert_gpu.o: $(CONVERT_PTX)
# ops/NAME/kernels.c holds the PTX of ops/NAME/kernels.cu (ops/gpu/ptx.h).
define kernels_of
$(1).o: ALL_CFLAGS += -DFRAG_PTX='"$(2)"'
$(1).o: $(2)
endef
$(foreach k,$(patsubst %.cu,%,$(wildcard libfrag/ops/*/kernels.cu)),\
	$(eval $(call kernels_of,$(B)/obj/$(k),$(B)/gen/$(k).ptx)))
endif
ifneq ($(BUILDING),)
$(if $(NVCC),,$(info operators are built without their kernels for GPUs, and examples/cuda not \
	at all: nvcc is not in $(CUDA_HOME)/bin (CUDA_HOME=DIR)))
endif

# The driver of tests (tests/cuda/fake_cuda.h), always with the declarations of frag: so the tests
# show that both are the same.
FAKE_CUDA := $(B)/tests/cuda/libcuda.so.1
FAKE_CUDA_OBJ := $(patsubst %,$(B)/obj/tests/cuda/fake_%.o,cuda memory streams green copies \
	kernels unused)
FAKE_OBJ := $(FAKE_CUDA_OBJ) $(patsubst %,$(B)/obj/tests/cuda/fake_%.o,nvml decoder)
$(FAKE_OBJ): $(B)/obj/tests/cuda/%.o: tests/cuda/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c $(LIBFRAG_INC) -Ilibfrag -Ilibfrag/ops -Itests $< -o $@
$(FAKE_CUDA): $(FAKE_CUDA_OBJ)
	@mkdir -p $(@D)
	$(CC) -shared $^ $(ALL_LDFLAGS) -Wl,-soname,libcuda.so.1 -lm $(into_place)
FAKE_NVML := $(B)/tests/cuda/libnvidia-ml.so.1
$(FAKE_NVML): $(B)/obj/tests/cuda/fake_nvml.o
	@mkdir -p $(@D)
	$(CC) -shared $^ $(ALL_LDFLAGS) -Wl,-soname,libnvidia-ml.so.1 $(into_place)
FAKE_DECODER := $(B)/tests/cuda/libnvcuvid.so.1
$(FAKE_DECODER): $(B)/obj/tests/cuda/fake_decoder.o $(FAKE_CUDA)
	@mkdir -p $(@D)
	$(CC) -shared $^ $(ALL_LDFLAGS) -Wl,-soname,libnvcuvid.so.1,-rpath,'$$ORIGIN' $(into_place)
tests: $(FAKE_CUDA) $(FAKE_NVML) $(FAKE_DECODER)
ifneq ($(filter ucx,$(MODULES)),)
# Stands between frag and UCX; never instrumented, because it is preloaded.
FAKE_UCX_CUDA := $(B)/tests/cuda/ucx_cuda.so
$(FAKE_UCX_CUDA): tests/cuda/ucx_cuda.c
	@mkdir -p $(@D) $(B)/obj/tests/cuda
	$(CC) -std=gnu11 -O2 -g $(WARN) -fPIC -fvisibility=hidden -MMD -MP \
		-MF $(B)/obj/tests/cuda/ucx_cuda.d -MT $@ -shared $< -Wl,-z,defs -ldl $(into_place)
tests: $(FAKE_UCX_CUDA)
endif
CONVERT_CASES := $(B)/obj/tests/cuda/convert_cases.o
TWIN_CASES := $(B)/obj/tests/cuda/twin_cases.o $(B)/obj/tests/cuda/twin.o
$(CONVERT_CASES) $(TWIN_CASES): $(B)/obj/tests/cuda/%.o: tests/cuda/%.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c -Ilibfrag/include -Ilibfrag/ops -Itests $< -o $@
$(B)/tests/operators/test_convert_gpu: $(CONVERT_CASES) | $(FAKE_CUDA)
$(B)/tests/operators/test_twins: $(TWIN_CASES) | $(FAKE_CUDA)
$(B)/tests/operators/test_recorded_gpu: | $(FAKE_CUDA)
$(B)/tests/operators/test_video_gpu: | $(FAKE_DECODER)
FAKE_CUDA_TESTS := $(addprefix $(B)/tests/,shared/test_cuda shared/test_cuda_pools \
	shared/test_cuda_staging shared/test_cuda_streams shared/test_cuda_green \
	shared/test_cuda_limit shared/test_cuda_lives shared/test_cuda_peers unit/test_inventory)
# It names the functions of the driver.
$(B)/obj/tests/programs/shared/test_cuda_lives.o: ALL_CFLAGS += -Ilibfrag
$(FAKE_CUDA_TESTS): | $(FAKE_CUDA) $(B)/lib/frag/modules/cuda.so $(B)/libexec/frag/fraghost

# make gpu-check: the tests that need a GPU, with the real driver. They run in a folder that holds
# all they need, so that it can be carried to a machine with a GPU: make gpu-check-kit makes it, and
# build/gpu-check/gpu_check.sh runs it. The folder also holds gpu_bench.sh, which measures.
GPU_CHECK := $(B)/gpu-check
CONVERTER_OBJ := $(patsubst %,$(B)/obj/libfrag/ops/%.o,gpu/twin \
	$(addprefix draw/,canvas entries font layer_spec layer_tensors layers levels space) \
	$(addprefix vision/,convert convert_gpu format_converter format_converter_gpu formats \
	kernels crop draw raw resize resize_frames sample taps) \
	$(addprefix inference/,detection_gpu detection_postprocessor detections \
	kernels masks segmentation_postprocessor))
$(B)/tests/cuda/gpu_check: tests/cuda/gpu_check.c tests/cuda/gpu_check_streams.c \
		tests/cuda/gpu_check.h $(CONVERT_CASES) $(TWIN_CASES) $(CONVERTER_OBJ) \
		$(LIBFRAG_SO)
	@mkdir -p $(@D) $(B)/obj/tests/cuda
	$(CC) $(filter-out -MMD -MP,$(ALL_CFLAGS)) $(LIBFRAG_INC) -Itests -Ilibfrag/ops \
		$(filter %.c %.o,$^) $(ALL_LDFLAGS) -lm \
		-L$(B)/lib -lfrag -ldl -Wl,-rpath,'$$ORIGIN/../lib:$$ORIGIN/../../lib' $(into_place)
tests: $(B)/tests/cuda/gpu_check
# Video has a folder of its own, because FFmpeg needs 130 libraries: make gpu-check-video makes it,
# and build/gpu-check-video/video_check.sh runs it.
GPU_CHECK_VIDEO := $(B)/gpu-check-video
VIDEO_CHECK := $(if $(filter video,$(WITHOUT)),,$(B)/tests/cuda/video_check)
$(B)/tests/cuda/video_check: tests/cuda/video_check.c $(LIBFRAG_SO) $(patsubst %.c,$(B)/obj/%.o, \
		$(filter-out %/plugin.c,$(wildcard libfrag/ops/video/*.c)) libfrag/ops/gpu/twin.c)
	@mkdir -p $(@D) $(B)/obj/tests/cuda
	$(CC) $(ALL_CFLAGS) -MF $(B)/obj/tests/cuda/video_check.d -MT $@ $(LIBFRAG_INC) \
		-Ilibfrag/ops \
		$(filter %.c %.o,$^) $(ALL_LDFLAGS) -L$(B)/lib -lfrag \
		$(shell $(PKG_CONFIG) --libs $(OPS_video_PKG)) -lm -ldl \
		-Wl,-rpath,'$$ORIGIN/../lib:$$ORIGIN/../../lib' $(into_place)
tests: $(VIDEO_CHECK)
gpu-check-video: $(VIDEO_CHECK) $(B)/lib/frag/modules/cuda.so
	@rm -rf $(GPU_CHECK_VIDEO)
	@mkdir -p $(addprefix $(GPU_CHECK_VIDEO)/,bin deps lib/frag/modules)
	@cp $(VIDEO_CHECK) $(GPU_CHECK_VIDEO)/bin
	@cp $(LIBFRAG_SO) $(GPU_CHECK_VIDEO)/lib
	@cp $(B)/lib/frag/modules/cuda.so $(GPU_CHECK_VIDEO)/lib/frag/modules
	@cp examples/data/pedestrians.mp4 tests/cuda/video_check.sh $(GPU_CHECK_VIDEO)
	@ldd $(VIDEO_CHECK) | \
		awk '$$3 ~ /^\// && $$1 !~ /^lib(c|m|dl|pthread|rt|frag|resolv)\.so/ { print $$3 }' | \
		sort -u | xargs -I{} cp -L {} $(GPU_CHECK_VIDEO)/deps
# make gpu-check-people makes the folder of examples/people, build/gpu-check-people: people_check.sh
# runs it, and networks_check.sh tries what networks on a GPU may meet.
GPU_CHECK_PEOPLE := $(B)/gpu-check-people
gpu-check-people: all $(B)/bench/network $(B)/bench/copies.so $(B)/tests/cuda/gpu_check
	@rm -rf $(GPU_CHECK_PEOPLE)
	@mkdir -p $(addprefix $(GPU_CHECK_PEOPLE)/,bin deps models people libexec/frag \
		lib/frag/modules lib/frag/plugins)
	@cp $(addprefix $(B)/bin/,fragctl driverd workerd) $(B)/bench/network \
		$(B)/tests/cuda/gpu_check $(GPU_CHECK_PEOPLE)/bin
	@cp $(B)/libexec/frag/fraghost $(GPU_CHECK_PEOPLE)/libexec/frag
	@cp $(LIBFRAG_SO) $(B)/bench/copies.so $(GPU_CHECK_PEOPLE)/lib
	@cp $(addprefix $(B)/lib/frag/modules/,cuda.so shm.so run.so http.so) \
		$(GPU_CHECK_PEOPLE)/lib/frag/modules
	@cp $(patsubst %,$(B)/lib/frag/plugins/lib%.so,basic vision inference video viewer) \
		$(GPU_CHECK_PEOPLE)/lib/frag/plugins
	@cp $(addprefix .cache/ai/models/,person-detection.onnx person-segmentation.onnx) \
		$(GPU_CHECK_PEOPLE)/models
	@cp examples/people/*.yaml $(GPU_CHECK_PEOPLE)/people
	@python3 examples/holohub/models.py $(GPU_CHECK_PEOPLE)/networks
	@python3 tests/cuda/bad_models.py $(GPU_CHECK_PEOPLE)/networks
	@cp examples/data/pedestrians.mp4 tests/cuda/people_check.sh tests/cuda/networks_check.sh \
		$(GPU_CHECK_PEOPLE)
	@$(B)/bin/fragctl run tests/cuda/large.yaml -- --out $(abspath $(GPU_CHECK_PEOPLE)) \
		>/dev/null
	@ldd $(GPU_CHECK_PEOPLE)/bin/* $(GPU_CHECK_PEOPLE)/libexec/frag/* \
		$(GPU_CHECK_PEOPLE)/lib/*.so* $(GPU_CHECK_PEOPLE)/lib/frag/*/*.so | \
		awk '$$3 ~ /^\// && $$1 !~ /^lib(c|m|dl|pthread|rt|frag|resolv)\.so/ { print $$3 }' | \
		sort -u | xargs -I{} cp -L {} $(GPU_CHECK_PEOPLE)/deps
.PHONY: gpu-check gpu-check-kit gpu-check-people gpu-check-video
# Networks at the size of the part of gpu_bench.sh, one picture and eight at a time.
FACES := .cache/ai/models/centerface.onnx
$(B)/bench/copies.so: tests/bench/copies.c
	@mkdir -p $(@D) $(B)/obj/tests/bench
	$(CC) $(ALL_CFLAGS) -MF $(B)/obj/tests/bench/copies.d -MT $@ -shared $< \
		$(ALL_LDFLAGS) $(into_place)
gpu-check-kit: all $(B)/tests/cuda/gpu_check $(B)/tests/sample_plugins/libgpu.so \
		$(B)/bench/gpu $(B)/bench/twins $(B)/bench/network $(B)/bench/copies.so \
		$(B)/bench/libbench.so
	@rm -rf $(GPU_CHECK) && mkdir -p $(addprefix $(GPU_CHECK)/,bin deps libexec/frag \
		lib/frag/modules lib/frag/plugins)
	@cp $(B)/tests/cuda/gpu_check $(addprefix $(B)/bench/,gpu twins network) \
		$(addprefix $(B)/bin/,fragctl driverd workerd) \
		$(GPU_CHECK)/bin
	@ip=$$(PATH="$$PATH:/usr/sbin" command -v ip); [ -z "$$ip" ] || cp -L $$ip $(GPU_CHECK)/bin
	@cp $(B)/libexec/frag/fraghost $(GPU_CHECK)/libexec/frag
	@cp $(LIBFRAG_SO) $(GPU_CHECK)/lib
	@cp $(addprefix $(B)/lib/frag/modules/,cuda.so shm.so $(if $(UCX_SRC),ucx.so)) \
		$(GPU_CHECK)/lib/frag/modules
	@cp $(addprefix $(B)/lib/frag/plugins/,libbasic.so libvision.so \
		libinference.so) \
		$(GPU_CHECK)/lib/frag/plugins
	@cp $(B)/tests/sample_plugins/libgpu.so $(BENCH_SO) $(B)/bench/copies.so $(GPU_CHECK)/lib
	@[ ! -e $(FACES) ] || { mkdir -p $(GPU_CHECK)/models && for n in 1 8; do \
		out="$$n,2,144,192"; \
		python3 mk/ai/sides.py $(FACES) $(GPU_CHECK)/models/centerface-$$n.onnx \
			$$n,3,576,768 $$n,1,144,192 $$out $$out $$n,10,144,192 || exit; \
		done; cp $(dir $(FACES))person-detection.onnx $(GPU_CHECK)/models; }
	@cp $(addprefix tests/cuda/,gpu_check.sh gpus_check.sh gpu_edges.sh) \
		tests/bench/gpu_bench.sh $(GPU_CHECK)
	@cp -r tests/bench/holoscan $(GPU_CHECK)
	@$(if $(NVCC),cp $(EXAMPLES_OUT)/libinvert.so $(GPU_CHECK)/lib)
	@$(if $(NVCC),cp examples/cuda/app.yaml $(GPU_CHECK)/example_cuda.yaml)
	@$(if $(NVCC),PKG_CONFIG_PATH=$(abspath $(B)/lib/pkgconfig) $(MAKE) --no-print-directory -s \
		-C examples/cuda O=$(abspath $(GPU_CHECK)/bin) CUDA_HOME=$(NVCC:%/bin/nvcc=%) \
		$(abspath $(GPU_CHECK)/bin)/test_invert)
	@ldd $(GPU_CHECK)/bin/* $(GPU_CHECK)/libexec/frag/* $(GPU_CHECK)/lib/*.so* \
		$(GPU_CHECK)/lib/frag/*/*.so | \
		awk '$$3 ~ /^\// && $$1 !~ /^lib(c|m|dl|pthread|rt|frag|resolv)\.so/ { print $$3 }' | \
		sort -u | xargs -I{} cp -L {} $(GPU_CHECK)/deps
gpu-check:
	@mk/deps.sh
	@$(MAKE) --no-print-directory -s gpu-check-kit $(if $(VIDEO_CHECK),gpu-check-video)
	@$(GPU_CHECK)/gpu_check.sh
	@$(if $(VIDEO_CHECK),$(GPU_CHECK_VIDEO)/video_check.sh)
