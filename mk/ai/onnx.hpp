/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a model of OpenVINO as ONNX, which ONNX Runtime takes to GPUs: the operations that the
 * networks of the examples have. Its inputs and outputs have the names of the parameters and
 * results, and all shapes are fixed. The numbers of fields and types are those of onnx.proto.
 */
#ifndef ONNX_HPP
#define ONNX_HPP

#include <fstream>
#include <map>

#include <openvino/openvino.hpp>
#include <openvino/opsets/opset8.hpp>

namespace onnx
{
namespace ops = ov::opset8;

/* A message of protocol buffers, field by field. */
struct message {
	std::string bytes;

	void varint(uint64_t value)
	{
		for (; value >= 0x80; value >>= 7)
			bytes += static_cast<char>(value | 0x80);
		bytes += static_cast<char>(value);
	}
	message &number(int field, int64_t value)
	{
		varint(static_cast<uint64_t>(field) << 3);
		varint(static_cast<uint64_t>(value));
		return *this;
	}
	message &text(int field, const std::string &value)
	{
		varint(static_cast<uint64_t>(field) << 3 | 2);
		varint(value.size());
		bytes += value;
		return *this;
	}
	message &real(int field, float value)
	{
		varint(static_cast<uint64_t>(field) << 3 | 5);
		bytes.append(reinterpret_cast<const char *>(&value), sizeof(value));
		return *this;
	}
	message &put(int field, const message &value)
	{
		return text(field, value.bytes);
	}
};

enum { F32 = 1, U8 = 2, I64 = 7, OF_INT = 2, OF_TEXT = 3, OF_INTS = 7 };

static message attribute(const std::string &name, int64_t value)
{
	return message().text(1, name).number(3, value).number(20, OF_INT);
}

static message attribute(const std::string &name, const std::string &value)
{
	return message().text(1, name).text(4, value).number(20, OF_TEXT);
}

template <typename List> static message list(const std::string &name, const List &values)
{
	message out = message().text(1, name);

	for (auto value : values)
		out.number(8, static_cast<int64_t>(value));
	return out.number(20, OF_INTS);
}

static int type_of(const ov::element::Type &type)
{
	return type == ov::element::u8 ? U8 : type.is_real() ? F32 : I64;
}

static message value_info(const std::string &name, const ov::Output<ov::Node> &of)
{
	message shape, tensor;

	for (size_t side : of.get_shape())
		shape.put(1, message().number(1, static_cast<int64_t>(side)));
	tensor.number(1, type_of(of.get_element_type())).put(2, shape);
	return message().text(1, name).put(2, message().put(1, tensor));
}

class writer {
	message graph;
	std::map<ov::Output<ov::Node>, std::string> names;
	int made = 0;

	std::string name()
	{
		return "n" + std::to_string(made++);
	}

	std::string constant(int type, const ov::Shape &shape, const std::string &bytes)
	{
		message tensor;
		std::string called = name();

		for (size_t side : shape)
			tensor.number(1, static_cast<int64_t>(side));
		graph.put(5, tensor.number(2, type).text(8, called).text(9, bytes));
		return called;
	}
	template <typename T> std::string constant(int type, const std::vector<T> &v, ov::Shape shape)
	{
		return constant(type, shape,
				std::string(reinterpret_cast<const char *>(v.data()),
					    v.size() * sizeof(T)));
	}
	std::string floats(const std::vector<float> &v, const ov::Shape &shape)
	{
		return constant(F32, v, shape);
	}
	std::string ints(const ov::Shape &shape)
	{
		return constant(I64, std::vector<int64_t>(shape.begin(), shape.end()),
				{shape.size()});
	}

	static std::vector<int64_t> numbers(const ov::Node &op, size_t input)
	{
		auto from = ov::as_type_ptr<ops::Constant>(op.get_input_node_shared_ptr(input));

		if (!from)
			throw std::runtime_error(op.get_friendly_name() + " takes no constant");
		return from->cast_vector<int64_t>();
	}

	std::string name_of(const ov::Output<ov::Node> &value)
	{
		auto known = names.find(value);

		if (known != names.end())
			return known->second;
		auto op = ov::as_type_ptr<ops::Constant>(value.get_node_shared_ptr());
		if (!op)
			throw std::runtime_error("there is no way to " +
						 value.get_node()->get_friendly_name());
		return names[value] = op->get_element_type().is_real()
					      ? floats(op->cast_vector<float>(), op->get_shape())
					      : constant(I64, op->cast_vector<int64_t>(),
							 op->get_shape());
	}

	std::string node(const char *type, const std::vector<std::string> &inputs,
			 const std::vector<message> &attributes, size_t outputs = 1)
	{
		message out;
		std::string first;

		for (const auto &input : inputs)
			out.text(1, input);
		for (size_t i = 0; i < outputs; i++) {
			std::string called = name();

			first = i == 0 ? called : first;
			out.text(2, called);
		}
		out.text(4, type);
		for (const auto &one : attributes)
			out.put(5, one);
		graph.put(1, out);
		return first;
	}

	/* Strides, dilations and padding of a convolution or a pool. */
	template <typename Op> std::vector<message> window(const Op &op)
	{
		std::vector<message> out = {list("strides", op->get_strides())};

		if (op->get_auto_pad() == ov::op::PadType::SAME_UPPER) {
			out.push_back(attribute("auto_pad", std::string("SAME_UPPER")));
			return out;
		}
		auto pads = std::vector<int64_t>(op->get_pads_begin().begin(),
						 op->get_pads_begin().end());
		pads.insert(pads.end(), op->get_pads_end().begin(), op->get_pads_end().end());
		out.push_back(list("pads", pads));
		return out;
	}

	/* The provider for CUDA leaves what has auto_pad to the CPU. */
	static std::vector<message> widened(const ops::ConvolutionBackpropData &op)
	{
		const ov::Strides strides = op.get_strides();
		const ov::Shape kernel = op.get_input_shape(1);
		std::vector<size_t> before, after;

		for (size_t i = 0; i < strides.size(); i++) {
			size_t wide = kernel[i + 2] > strides[i] ? kernel[i + 2] - strides[i] : 0;

			before.push_back(wide / 2);
			after.push_back(wide - wide / 2);
		}
		before.insert(before.end(), after.begin(), after.end());
		return {list("strides", strides), list("pads", before)};
	}

	/* ONNX has the groups of the weights side by side. */
	std::string grouped(const std::shared_ptr<ops::GroupConvolution> &op)
	{
		auto shape = op->get_input_shape(1);
		auto attributes = window(op);

		attributes.push_back(attribute("group", static_cast<int64_t>(shape[0])));
		shape[1] *= shape[0];
		shape.erase(shape.begin());
		auto weights = node("Reshape", {name_of(op->input_value(1)), ints(shape)}, {});
		return node("Conv", {name_of(op->input_value(0)), weights}, attributes);
	}

	std::string resized(const ov::op::util::InterpolateBase &op, const std::string &in)
	{
		using Mode = ops::Interpolate::CoordinateTransformMode;
		bool has_corners =
			op.get_attrs().coordinate_transformation_mode == Mode::ALIGN_CORNERS;

		/* The provider for CUDA resizes the last two sides, whatever is asked for. */
		ov::Shape to = op.get_output_shape(0);
		bool has_channels_last = to.size() == 4 && to[1] != op.get_input_shape(0)[1];
		std::string from = in;

		if (has_channels_last) {
			to = {to[0], to[3], to[1], to[2]};
			from = node("Transpose", {in}, {list("perm", ov::Shape{0, 3, 1, 2})});
		}
		from = node("Resize", {from, "", "", ints(to)},
			    {attribute("mode", std::string("linear")),
			     attribute("coordinate_transformation_mode",
				       std::string(has_corners ? "align_corners" : "half_pixel"))});
		return has_channels_last
			       ? node("Transpose", {from}, {list("perm", ov::Shape{0, 2, 3, 1})})
			       : from;
	}

	std::string translate(const std::shared_ptr<ov::Node> &op)
	{
		static const std::map<std::string, const char *> same = {
			{"Add", "Add"},         {"Subtract", "Sub"}, {"Multiply", "Mul"},
			{"Divide", "Div"},      {"Exp", "Exp"},      {"Sigmoid", "Sigmoid"},
			{"ReLU", "Relu"},       {"Relu", "Relu"},
			{"Tile", "Tile"}};
		const std::string type = op->get_type_name();
		std::vector<std::string> in;

		if (auto wide = ov::as_type_ptr<ops::ConvolutionBackpropData>(op))
			return node("ConvTranspose", {name_of(op->input_value(0)),
						      name_of(op->input_value(1))},
				    widened(*wide));
		if (auto group = ov::as_type_ptr<ops::GroupConvolution>(op))
			return grouped(group);
		if (type == "Transpose")
			return node("Transpose", {name_of(op->input_value(0))},
				    {list("perm", numbers(*op, 1))});
		if (type == "Reshape" || type == "Squeeze" || type == "Unsqueeze")
			return node("Reshape", {name_of(op->input_value(0)),
						ints(op->get_output_shape(0))}, {});
		if (auto resize = ov::as_type_ptr<ov::op::util::InterpolateBase>(op))
			return resized(*resize, name_of(op->input_value(0)));
		for (const auto &input : op->input_values())
			in.push_back(name_of(input));
		if (same.count(type))
			return node(same.at(type), in, {});
		if (type == "HSwish") { /* the provider for CUDA lacks HardSwish */
			auto up = node("Add", {in[0], floats({3}, {})}, {});
			auto clipped = node("Clip", {up, floats({0}, {}), floats({6}, {})}, {});

			return node("Mul", {in[0], node("Mul", {clipped, floats({1.0F / 6}, {})}, {})},
				    {});
		}
		if (auto convolution = ov::as_type_ptr<ops::Convolution>(op))
			return node("Conv", in, window(convolution));
		if (auto clamp = ov::as_type_ptr<ops::Clamp>(op))
			return node("Clip", {in[0], floats({(float)clamp->get_min()}, {}),
					     floats({(float)clamp->get_max()}, {})}, {});
		if (auto concat = ov::as_type_ptr<ops::Concat>(op))
			return node("Concat", in, {attribute("axis", concat->get_axis())});
		if (auto pool = ov::as_type_ptr<ov::op::v1::AvgPool>(op)) {
			auto attributes = window(pool);

			attributes.push_back(list("kernel_shape", pool->get_kernel()));
			return node("AveragePool", in, attributes);
		}
		if (type == "Convert") /* constants of 16 bits have become f32 already */
			return op->get_input_element_type(0).is_real()
				       ? in[0]
				       : node("Cast", in, {attribute("to", F32)});
		throw std::runtime_error("there is no way to write " + type);
	}

    public:
	void write(const std::shared_ptr<ov::Model> &model, const std::string &path)
	{
		for (const auto &parameter : model->get_parameters()) {
			std::string called = parameter->get_friendly_name();

			names[parameter->output(0)] = called;
			graph.put(11, value_info(called, parameter->output(0)));
		}
		for (const auto &op : model->get_ordered_ops()) {
			if (ov::as_type_ptr<ops::Constant>(op) || ov::as_type_ptr<ops::Parameter>(op) ||
			    ov::as_type_ptr<ops::Result>(op))
				continue;
			if (auto split = ov::as_type_ptr<ops::Split>(op)) {
				node("Split", {name_of(op->input_value(0))},
				     {attribute("axis", numbers(*op, 1)[0])},
				     op->get_output_size());
				for (size_t i = 0; i < op->get_output_size(); i++)
					names[op->output(i)] =
						"n" + std::to_string(made - op->get_output_size() + i);
				continue;
			}
			names[op->output(0)] = translate(op);
		}
		for (const auto &result : model->get_results()) {
			std::string called = result->get_friendly_name();

			graph.put(1, message().text(1, name_of(result->input_value(0)))
					     .text(2, called)
					     .text(4, "Identity"));
			graph.put(12, value_info(called, result->output(0)));
		}
		graph.text(2, "network");
		std::ofstream(path, std::ios::binary)
			<< message().number(1, 7).put(7, graph).put(8, message().number(2, 14)).bytes;
	}
};
} // namespace onnx

#endif
