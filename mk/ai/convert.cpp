/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts a model into OpenVINO's own format (IR) with weights of 16 bits, which is read ten times
 * faster, and into ONNX: convert MODEL OUT INPUT SHAPE, for example 1,300,300,3, makes OUT.xml and
 * OUT.onnx. deps.py builds and runs it.
 */
#include <iostream>
#include <sstream>

#include <openvino/frontend/tensorflow_lite/extension/conversion.hpp>
#include <openvino/openvino.hpp>
#include <openvino/opsets/opset8.hpp>
#include <openvino/pass/constant_folding.hpp>
#include <openvino/pass/manager.hpp>

#include "onnx.hpp"

namespace ops = ov::opset8;

/* Of a frame of examples/people, which the network for GPUs takes at a time. */
static const size_t PARTS = 4;

static std::shared_ptr<ov::Node> order(const ov::Output<ov::Node> &from, std::vector<int64_t> axes)
{
	return std::make_shared<ops::Transpose>(
		from, ops::Constant::create(ov::element::i64, {axes.size()}, axes));
}

/*
 * MediaPipe's custom operation is TensorFlow Lite's TRANSPOSE_CONV with padding SAME and stride 2,
 * plus a bias. Its pictures are NHWC and its weights OHWI.
 */
static ov::OutputVector transposed_convolution(const ov::frontend::NodeContext &node)
{
	auto picture = order(node.get_input(0), {0, 3, 1, 2});
	auto weights = order(node.get_input(1), {3, 0, 1, 2});
	auto wide = std::make_shared<ops::ConvolutionBackpropData>(
		picture, weights, ov::Strides{2, 2}, ov::CoordinateDiff{0, 0},
		ov::CoordinateDiff{0, 0}, ov::Strides{1, 1}, ov::op::PadType::SAME_UPPER);

	return {std::make_shared<ops::Add>(order(wide, {0, 2, 3, 1}), node.get_input(2))};
}

static ov::Output<ov::Node> find(const ov::Model &model, const std::string &name)
{
	for (const auto &op : model.get_ops())
		if (op->get_friendly_name() == name)
			return op->output(0);
	throw std::runtime_error("it has no operation " + name);
}

static std::shared_ptr<ov::Node> real(float value)
{
	return ops::Constant::create(ov::element::f32, {}, {value});
}

/*
 * The network that finds people, without the loops of TensorFlow before and behind it: pictures
 * become numbers from -1 to 1 as there, and all boxes come out, unsorted, with the score of a person.
 */
static std::shared_ptr<ov::Model> without_loops(const ov::Model &model, const ov::Shape &shape)
{
	auto image = std::make_shared<ops::Parameter>(ov::element::u8, shape);
	auto scaled = std::make_shared<ops::Multiply>(
		std::make_shared<ops::Convert>(image, ov::element::f32), real(2.0F / 255));
	auto input = order(std::make_shared<ops::Subtract>(scaled, real(1)), {0, 3, 1, 2});

	for (const auto &op : model.get_ordered_ops())
		if (ov::as_type_ptr<ops::Convolution>(op)) {
			op->input(0).replace_source_output(input);
			break;
		}
	auto boxes = find(model, "Postprocessor/Reshape_2");
	auto classes = std::make_shared<ops::Split>(
		find(model, "Postprocessor/convert_scores"),
		ops::Constant::create(ov::element::i64, {}, {2}), 2);
	auto scores = std::make_shared<ops::Squeeze>(
		classes->output(1), ops::Constant::create(ov::element::i64, {1}, {2}));
	auto cut = std::make_shared<ov::Model>(ov::OutputVector{boxes, scores},
					       ov::ParameterVector{image});

	image->set_friendly_name("image_tensor:0");
	cut->get_results()[0]->set_friendly_name("detection_boxes:0");
	cut->get_results()[1]->set_friendly_name("detection_scores:0");
	return cut;
}

static void write_onnx(const std::shared_ptr<ov::Model> &model, const std::string &path)
{
	ov::pass::Manager passes;

	passes.register_pass<ov::pass::ConstantFolding>();
	passes.run_passes(model);
	onnx::writer().write(model, path);
}

int main(int argc, char **argv)
{
	if (argc != 5) {
		std::cerr << "usage: convert MODEL OUT INPUT SHAPE\n";
		return 2;
	}
	try {
		const std::string out = argv[2];
		ov::Shape shape;
		std::istringstream text(argv[4]);
		for (std::string side; std::getline(text, side, ',');)
			shape.push_back(std::stoul(side));

		ov::Core core;
		core.add_extension(
			std::make_shared<ov::frontend::tensorflow_lite::ConversionExtension>(
				"Convolution2DTransposeBias", transposed_convolution));
		auto model = core.read_model(argv[1]);
		model->reshape({{argv[3], ov::PartialShape(shape)}});
		ov::save_model(model, out + ".xml", true);

		bool has_loops = std::string(argv[3]) == "image_tensor:0";
		if (has_loops) {
			shape[0] = PARTS;
			model->reshape({{argv[3], ov::PartialShape(shape)}});
			model = without_loops(*model, shape);
		} else {
			auto result = model->get_results()[0];

			result->set_friendly_name(result->input_value(0).get_any_name());
		}
		write_onnx(model, out + ".onnx");
	} catch (const std::exception &failure) {
		std::cerr << argv[1] << ": " << failure.what() << "\n";
		return 1;
	}
	return 0;
}
