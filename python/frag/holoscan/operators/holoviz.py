# SPDX-License-Identifier: Apache-2.0
"""holoscan.operators.holoviz: pictures of layers, which frag's viewer shows on a web page.

What a window alone can do is refused when the application starts.
"""
import json

from .._args import Arg, ArgElementType, ArgType
from .._component import ConditionType
from .._enums import Enum, make
from .._registry import registry
from .._text import scalar
from ._native import ROW_MAJOR, NativeOperator

__all__ = ["HolovizOp", "Pose3D"]

registry().add("std::shared_ptr<nvidia::gxf::Pose3D>", "std::shared_ptr<std::array<float, 16>>",
               "std::vector<HolovizOp::InputSpec>")


def _enumeration(name, names):
    """An enumeration in HolovizOp, and the dict from texts to its members."""
    members = make(name, names.upper())
    return members, {member.name.lower(): member for member in members}


_InputType, _holoviz_str_to_input_type = _enumeration(
    "InputType", "unknown color color_lut points lines line_strip triangles crosses rectangles "
    "ovals text depth_map depth_map_color points_3d lines_3d line_strip_3d triangles_3d")
_ImageFormat, _holoviz_str_to_image_format = _enumeration(
    "ImageFormat", "auto_detect r8_uint r8_sint r8_unorm r8_snorm r8_srgb r16_uint r16_sint "
    "r16_unorm r16_snorm r16_sfloat r32_uint r32_sint r32_sfloat r8g8b8_unorm r8g8b8_snorm "
    "r8g8b8_srgb r8g8b8a8_unorm r8g8b8a8_snorm r8g8b8a8_srgb r16g16b16a16_unorm "
    "r16g16b16a16_snorm r16g16b16a16_sfloat r32g32b32a32_sfloat d16_unorm x8_d24_unorm "
    "d32_sfloat a2b10g10r10_unorm_pack32 a2r10g10b10_unorm_pack32 b8g8r8a8_unorm b8g8r8a8_srgb "
    "a8b8g8r8_unorm_pack32 a8b8g8r8_srgb_pack32 y8u8y8v8_422_unorm u8y8v8y8_422_unorm "
    "y8_u8v8_2plane_420_unorm y8_u8v8_2plane_422_unorm y8_u8_v8_3plane_420_unorm "
    "y8_u8_v8_3plane_422_unorm y16_u16v16_2plane_420_unorm y16_u16v16_2plane_422_unorm "
    "y16_u16_v16_3plane_420_unorm y16_u16_v16_3plane_422_unorm")
_DepthMapRenderMode, _holoviz_str_to_depth_map_render_mode = _enumeration(
    "DepthMapRenderMode", "points lines triangles")
_YuvModelConversion, _holoviz_str_to_yuv_model_conversion = _enumeration(
    "YuvModelConversion", "yuv_601 yuv_709 yuv_2020")
_YuvRange, _holoviz_str_to_yuv_range = _enumeration("YuvRange", "itu_full itu_narrow")
_ChromaLocation, _holoviz_str_to_chroma_location = _enumeration(
    "ChromaLocation", "cosited_even midpoint")
_ColorSpace = Enum("ColorSpace", {
    "AUTO": -1, "SRGB_NONLINEAR": 0, "EXTENDED_SRGB_LINEAR": 1, "BT2020_LINEAR": 2,
    "HDR10_ST2084": 3, "PASS_THROUGH": 4, "BT709_LINEAR": 5})
_holoviz_str_to_color_space = {member.name.lower(): member for member in _ColorSpace}

_CHOICES = {"image_format": _holoviz_str_to_image_format,
            "depth_map_render_mode": _holoviz_str_to_depth_map_render_mode,
            "yuv_model_conversion": _holoviz_str_to_yuv_model_conversion,
            "yuv_range": _holoviz_str_to_yuv_range,
            "x_chroma_location": _holoviz_str_to_chroma_location,
            "y_chroma_location": _holoviz_str_to_chroma_location}
_SIDES = ("offset_x", "offset_y", "width", "height")
_PLAIN = ("opacity", "priority", "color", "line_width", "point_size", "text")


class Pose3D:
    """A camera's pose."""

    def __init__(self, rotation=None, translation=None):
        self.rotation = rotation or [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
        self.translation = translation or [0.0, 0.0, 0.0]


class _View:
    """A part of the picture in which a layer is drawn."""

    def __init__(self):
        self.offset_x = self.offset_y = 0.0
        self.width = self.height = 1.0
        self._matrix = None

    @property
    def matrix(self):
        return self._matrix

    @matrix.setter
    def matrix(self, matrix):
        values = None if matrix is None else [float(x) for x in matrix]
        if values is not None and len(values) != 16:
            raise TypeError("a matrix has 16 numbers, not %d" % len(values))
        self._matrix = values


class _InputSpec:
    """A layer: which tensor is drawn, and how."""
    View = _View

    def __init__(self, tensor_name="", type="unknown"):
        if isinstance(type, str):
            if type not in _holoviz_str_to_input_type:
                raise RuntimeError("a layer has no type %r; it has %s" % (
                    type, ", ".join(_holoviz_str_to_input_type)))
            type = _holoviz_str_to_input_type[type]
        self.tensor_name = tensor_name
        self.type = type
        self.opacity = 1.0
        self.priority = 0
        self.color = [1.0, 1.0, 1.0, 1.0]
        self.line_width = 1.0
        self.point_size = 1.0
        self.text = []
        self.views = []
        for key, choices in _CHOICES.items():
            setattr(self, key, next(iter(choices.values())))

    def __setattr__(self, key, value):
        if key in _CHOICES and value not in _CHOICES[key].values() or (
                key in _CHOICES and type(value) is int):
            raise TypeError("%s is a HolovizOp.%s, not %r" % (
                key, type(next(iter(_CHOICES[key].values()))).__name__, value))
        super().__setattr__(key, value)

    def description(self):
        lines = ["name: " + self.tensor_name, "type: " + self.type.name.lower()]
        lines += ["%s: %s" % (key, scalar(getattr(self, key))) for key in _PLAIN[:3]]
        lines += ["%s: %s" % (key, getattr(self, key).name.lower()) for key in _CHOICES]
        if self.views:
            lines.append("views:")
        for view in self.views:
            for number, key in enumerate(_SIDES):
                lines.append("  %s %s: %s" % (" " if number else "-", key,
                                              scalar(getattr(view, key))))
        return "\n".join(lines)


def _layer(tensor):
    """The InputSpec that a dict describes."""
    if isinstance(tensor, _InputSpec):
        return tensor
    if not hasattr(tensor, "keys"):
        raise ValueError("a layer in tensors is a dict or a HolovizOp.InputSpec, not %r"
                         % (tensor,))
    unknown = set(tensor) - {"name", "type", "views", *_PLAIN, *_CHOICES}
    if unknown:
        raise ValueError("a layer in tensors has no key %s" % ", ".join(sorted(unknown)))
    if not isinstance(tensor.get("name"), str) or "type" not in tensor:
        raise ValueError("a layer in tensors needs a name, which is a str, and a type: %r"
                         % (tensor,))
    spec = _InputSpec(tensor["name"], tensor["type"])
    for key in (*_PLAIN, "views"):
        if key in tensor:
            setattr(spec, key, tensor[key])
    for key, choices in _CHOICES.items():
        if key in tensor:
            value = tensor[key]
            if isinstance(value, str) and value not in choices:
                raise ValueError("a layer's %s is one of %s, not %r" % (
                    key, ", ".join(choices), value))
            setattr(spec, key, choices[value] if isinstance(value, str) else value)
    _check(spec)
    return spec


def _check(spec):
    color = spec.color
    if isinstance(color, str) or not hasattr(color, "__len__") or len(color) != 4 \
            or not all(0 <= float(x) <= 1 for x in color):
        raise ValueError("a layer's color is red, green, blue and alpha, each from 0 to 1, not %r"
                         % (color,))
    if isinstance(spec.text, str) or not all(isinstance(x, str) for x in spec.text):
        raise ValueError("a layer's text is a list of str, not %r" % (spec.text,))


_CALLBACKS = ("key_callback", "unicode_char_callback", "mouse_button_callback", "scroll_callback",
              "cursor_pos_callback", "framebuffer_size_callback", "window_size_callback",
              "window_close_callback")
_BUFFERS = ("enable_render_buffer_input", "enable_render_buffer_output",
            "enable_depth_buffer_input", "enable_depth_buffer_output",
            "enable_camera_pose_output")
_OUTPUTS = {"enable_render_buffer_output": "render_buffer_output",
            "enable_depth_buffer_output": "depth_buffer_output",
            "enable_camera_pose_output": "camera_pose_output"}


class HolovizOp(NativeOperator):
    """Shows pictures, made of layers, on a web page."""
    _native_type = "viewer"
    _says = ROW_MAJOR
    _same = ("width", "height", "framerate", "window_title", "camera_eye", "camera_look_at",
             "camera_up")
    InputType = _InputType
    ImageFormat = _ImageFormat
    DepthMapRenderMode = _DepthMapRenderMode
    YuvModelConversion = _YuvModelConversion
    YuvRange = _YuvRange
    ChromaLocation = _ChromaLocation
    ColorSpace = _ColorSpace
    InputSpec = _InputSpec

    def __init__(self, fragment, *args, allocator=None, receivers=(), tensors=(), color_lut=(),
                 window_title="Holoviz", display_name="", width=1920, height=1080, framerate=60,
                 use_exclusive_display=False, fullscreen=False, headless=False,
                 framebuffer_srgb=False, vsync=False, display_color_space=_ColorSpace.AUTO,
                 enable_render_buffer_input=False, enable_render_buffer_output=False,
                 enable_depth_buffer_input=False, enable_depth_buffer_output=False,
                 enable_camera_pose_output=False, camera_pose_output_type="projection_matrix",
                 camera_eye=(0.0, 0.0, 1.0), camera_look_at=(0.0, 0.0, 0.0),
                 camera_up=(0.0, 1.0, 0.0), key_callback=None, unicode_char_callback=None,
                 mouse_button_callback=None, scroll_callback=None, cursor_pos_callback=None,
                 framebuffer_size_callback=None, window_size_callback=None,
                 window_close_callback=None, font_path="", cuda_stream_pool=None,
                 window_close_condition=None, name="holoviz_op"):
        if isinstance(display_color_space, str):
            if display_color_space not in _holoviz_str_to_color_space:
                raise ValueError("display_color_space is one of %s, not %r" % (
                    ", ".join(_holoviz_str_to_color_space), display_color_space))
            display_color_space = _holoviz_str_to_color_space[display_color_space]
        self._layers = [_layer(tensor) for tensor in tensors]
        buffers = (enable_render_buffer_input, enable_render_buffer_output,
                   enable_depth_buffer_input, enable_depth_buffer_output,
                   enable_camera_pose_output)
        self._enabled = [key for key, enabled in zip(_BUFFERS, buffers) if enabled]
        self._make(fragment, args, name, allocator=allocator, color_lut=list(color_lut),
                   window_title=window_title, display_name=display_name, width=width,
                   height=height, framerate=framerate,
                   use_exclusive_display=use_exclusive_display, fullscreen=fullscreen,
                   headless=headless, framebuffer_srgb=framebuffer_srgb, vsync=vsync,
                   enable_render_buffer_input=enable_render_buffer_input,
                   enable_render_buffer_output=enable_render_buffer_output,
                   enable_depth_buffer_input=enable_depth_buffer_input,
                   enable_depth_buffer_output=enable_depth_buffer_output,
                   enable_camera_pose_output=enable_camera_pose_output,
                   camera_pose_output_type=camera_pose_output_type, camera_eye=list(camera_eye),
                   camera_look_at=list(camera_look_at), camera_up=list(camera_up),
                   key_callback=key_callback, unicode_char_callback=unicode_char_callback,
                   mouse_button_callback=mouse_button_callback, scroll_callback=scroll_callback,
                   cursor_pos_callback=cursor_pos_callback,
                   framebuffer_size_callback=framebuffer_size_callback,
                   window_size_callback=window_size_callback,
                   window_close_callback=window_close_callback, font_path=font_path,
                   cuda_stream_pool=cuda_stream_pool,
                   window_close_condition=window_close_condition)

    def _setup_ports(self, spec):
        from .._spec import IOSpec
        spec.input("receivers", size=IOSpec.ANY_SIZE)
        spec.input("input_specs").condition(ConditionType.NONE)
        for key in ("enable_render_buffer_input", "enable_depth_buffer_input"):
            if key in self._enabled:
                spec.input(key.removeprefix("enable_"))
        for key, port in _OUTPUTS.items():
            if key in self._enabled:
                spec.output(port)

    def initialize(self):
        for key in _BUFFERS[:4:2]:
            self._args.append(Arg(key.removeprefix("enable_"), self._spec,
                                  ArgType(ArgElementType.IO_SPEC)))
        super().initialize()

    def default_window_close_callback(self):
        """Ends the application, if it runs."""
        if self._body is not None:
            self.fragment.stop_execution()

    def _native_parameters(self):
        self._refuse_unless("use the operator draw of frag, which emits the picture",
                            **{key: False for key in _BUFFERS})
        self._refuse_unless("the viewer is a web page; put it into an operator of your own",
                            **{key: None for key in _CALLBACKS})
        parameters = {**super()._native_parameters(), "tensors": self._native_layers(self._layers)}
        if self._given["color_lut"]:
            parameters["color_lut"] = [_plain(color) for color in self._given["color_lut"]]
        return parameters

    def _native_layers(self, layers):
        """Layers as frag's operator has them in its parameter."""
        for layer in layers:
            if any(view.matrix is not None for view in layer.views):
                self.refuse("HolovizOp.InputSpec.View.matrix", "give camera_eye and its like")
        return [{"name": layer.tensor_name, "type": layer.type.name.lower(),
                 **{key: _plain(getattr(layer, key)) for key in _PLAIN
                    if key != "text" or layer.text},
                 **_places(layer)}
                for layer in layers if layer.type != _InputType.UNKNOWN]

    def _converter(self, port):
        return self._text_of if port == "input_specs" else None

    def _text_of(self, value):
        """The list of InputSpec of a message as the text that frag's operator takes."""
        if not isinstance(value, (list, tuple)):
            raise TypeError("input_specs of %s takes a list of HolovizOp.InputSpec, not %r"
                            % (self.name, value))
        return json.dumps(self._native_layers([_layer(spec) for spec in value]),
                          ensure_ascii=False, default=float)


def _places(layer):
    """The keys of a layer that say where and how it is drawn."""
    keys = {}
    if layer.views:
        keys["views"] = [{key: getattr(view, key) for key in _SIDES} for view in layer.views]
    if layer.type == _InputType.DEPTH_MAP:
        keys["depth_map_render_mode"] = layer.depth_map_render_mode.name.lower()
    return keys


def _plain(value):
    return [_plain(x) for x in value] if isinstance(value, (list, tuple)) else value
