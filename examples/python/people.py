# SPDX-License-Identifier: Apache-2.0
"""Finds people in the clip of a street camera: one fragment plays and detects by operators in C,
the other one counts in Python. It needs frag with videos and `make deps-ai`
(../people/README.md)."""
import os

import frag

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data")
MODELS = os.path.join(HERE, "..", "..", ".cache", "ai", "models")
FRAMES = int(os.environ.get("FRAMES", "20"))
# Four squares of the size that the network takes, which overlap by more than a person is wide.
PARTS = [[left, 0.173611, left + 0.390625, 0.694444]
         for left in (0.0, 0.203125, 0.40625, 0.609375)]


class Count(frag.Operator):
    """Prints how many people are in each frame, and where the first one is."""

    def setup(self, spec: frag.OperatorSpec) -> None:
        spec.input("people")

    def compute(self, op_input: frag.InputContext, op_output: frag.OutputContext,
                context: frag.ExecutionContext) -> None:
        boxes = memoryview(op_input.receive("people")["boxes"])  # [n, 4] of float
        people = boxes.shape[0] if boxes.shape else 0
        first = ""
        if people > 0:
            first = ", the first one at " + " ".join("%.2f" % boxes[0, i] for i in range(4))
        print("frame %d: %d people%s" % (context.count + 1, people, first), flush=True)


class Detect(frag.Fragment):
    def compose(self) -> None:
        frames = frag.NativeOperator(self, "video_replayer", name="frames", directory=DATA,
                                     basename="pedestrians.mp4", realtime=False, count=FRAMES)
        parts = frag.NativeOperator(self, "crop", name="parts", width=300, height=300,
                                    regions=PARTS)
        detect = frag.NativeOperator(
            self, "inference", name="detect", model_folder=MODELS,
            model_path_map={"person": "person-detection.xml"}, pre_processor_map={"person": [""]},
            inference_map={"person": ["detection_boxes:0", "detection_scores:0",
                                      "num_detections:0"]})
        people = frag.NativeOperator(
            self, "detection_postprocessor", name="people", boxes_tensor_name="detection_boxes:0",
            scores_tensor_name="detection_scores:0", count_tensor_name="num_detections:0",
            regions_tensor_name="boxes", score_threshold=0.33, inside_threshold=0.7,
            labels=["person"])
        people.metadata_policy = "update"
        self.add_flow(frames, parts, {("output", "source_video")})
        self.add_flow(parts, detect, {("out", "receivers")})
        self.add_flow(parts, people, {("out", "receivers")})
        self.add_flow(detect, people, {("transmitter", "receivers")})


class Show(frag.Fragment):
    def compose(self) -> None:
        self.add_operator(Count(self, name="count"))


class People(frag.Application):
    def compose(self) -> None:
        self.add_flow(Detect(self, name="detect"), Show(self, name="show"),
                      {("people.out", "count.people")})


if __name__ == "__main__":
    People().run()
