/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts a model into OpenVINO's own format (IR) with weights of 16 bits, which is read ten times
 * faster: convert MODEL OUT.xml INPUT SHAPE, for example 1,300,300,3. deps.sh builds and runs it.
 */
#include <iostream>
#include <sstream>

#include <openvino/frontend/tensorflow_lite/extension/conversion.hpp>
#include <openvino/openvino.hpp>
#include <openvino/opsets/opset8.hpp>

namespace ops = ov::opset8;

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

int main(int argc, char **argv)
{
	if (argc != 5) {
		std::cerr << "usage: convert MODEL OUT.xml INPUT SHAPE\n";
		return 2;
	}
	try {
		std::vector<int64_t> shape;
		std::istringstream text(argv[4]);
		for (std::string side; std::getline(text, side, ',');)
			shape.push_back(std::stoll(side));

		ov::Core core;
		core.add_extension(
			std::make_shared<ov::frontend::tensorflow_lite::ConversionExtension>(
				"Convolution2DTransposeBias", transposed_convolution));
		auto model = core.read_model(argv[1]);
		model->reshape({{argv[3], ov::PartialShape(shape)}});
		ov::save_model(model, argv[2], true);
	} catch (const std::exception &failure) {
		std::cerr << argv[1] << ": " << failure.what() << "\n";
		return 1;
	}
	return 0;
}
