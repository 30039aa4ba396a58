# SPDX-License-Identifier: Apache-2.0
"""holoscan.operators, and its modules: each of them has one class."""
from .._modules import module_of
from . import _built_in, holoviz, test_ops  # noqa: F401
from .holoviz import HolovizOp

_MODULES = {
    "bayer_demosaic": "BayerDemosaicOp", "format_converter": "FormatConverterOp",
    "gxf_codelet": "GXFCodeletOp", "inference": "InferenceOp",
    "inference_processor": "InferenceProcessorOp", "ping_rx": "PingRxOp",
    "ping_tensor_rx": "PingTensorRxOp", "ping_tensor_tx": "PingTensorTxOp", "ping_tx": "PingTxOp",
    "segmentation_postprocessor": "SegmentationPostprocessorOp",
    "v4l2_video_capture": "V4L2VideoCaptureOp", "video_stream_recorder": "VideoStreamRecorderOp",
    "video_stream_replayer": "VideoStreamReplayerOp"}
__all__ = ["HolovizOp", "holoviz", *_MODULES, *_MODULES.values()]

for _name, _class in _MODULES.items():
    globals()[_class] = getattr(_built_in, _class)
    globals()[_name] = module_of(__name__ + "." + _name, globals()[_class])
