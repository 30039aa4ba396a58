# SPDX-License-Identifier: Apache-2.0
"""Video is tested for what it shows: a clip whose every frame is known, and the real one, through
whole applications.

What was recorded is decoded by the program ffmpeg and looked at by tests/video/check_clip, a
program without libfrag; the boxes are written down by an operator of the test.
"""
import os
import re
import select
import signal
import subprocess
import unittest

import clips
import cluster

REAL = os.path.join(cluster.TOP, "examples", "data", "pedestrians.mp4")
EXAMPLE = os.path.join(cluster.TOP, "examples", "video_replayer_distributed", "app.yaml")
REPLACE = ("--set", "play.recorder.overwrite=true")
FRAMES = 120
REAL_FRAMES = 60
WARMUP = 15

APP = """
frag: 1
application: watch
arguments:
  clip: {}
  folder: {}
  min_area: {default: "2000"}
  realtime: {default: false}
  codec: {default: auto}
  picture: {default: frame.png}
fragments:
  fragment1:
    operators:
      replayer: {type: video_replayer, parameters: {path: "${clip}", realtime: "${realtime}"}}
  fragment2:
    extensions: [libbox_log.so]
    operators:
      conv: {type: format_converter, parameters: {out_dtype: rgb888}}
      motion: {type: motion_boxes, parameters: {min_area: "${min_area}"}}
      log: {type: box_log, parameters: {path: "${folder}/boxes"}}
      recorder: {type: video_recorder, parameters: {path: "${folder}/out.mp4", codec: "${codec}"}}
      picture: {type: image_writer, parameters: {path: "${folder}/${picture}", frame: 50}}
    flows:
      - conv.tensor -> motion.in
      - motion.out -> log.in
      - {from: log.out, to: [recorder.input, picture.in]}
flows:
  - fragment1.replayer.output -> fragment2.conv.source_video
"""

WRITER = """
frag: 1
application: write
operators:
  replayer: {type: video_replayer, parameters: {path: "%s", count: 5}}
  writer: %s
flows: [replayer.output -> writer]
"""


def have_video():
    return os.path.exists(os.path.join(cluster.BUILD, "lib", "frag", "plugins", "libvideo.so"))


@unittest.skipUnless(have_video(), "built without FFmpeg's libraries")
class Video(cluster.ClusterTest):
    app_text = APP

    def tool(self, name, *args):
        """Runs a program that must succeed; what it says is in the failure."""
        done = subprocess.run(
            [name, *map(str, args)], capture_output=True, text=True, cwd=self.folder, timeout=120
        )
        self.assertEqual(
            done.returncode,
            0,
            "%s %s:\n%s" % (os.path.basename(name), args, done.stdout + done.stderr),
        )
        return done.stdout

    def test_nothing_is_printed_where_memory_must_not_be_locked(self):
        """libgcrypt, which FFmpeg brings, warns there as soon as it is loaded."""
        prefix = ["prlimit", "--memlock=0"]
        if os.getuid() == 0:
            prefix += ["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"]
        p = self.start("fragctl", "validate", EXAMPLE, prefix=prefix)
        self.assertEqual((p.wait(), p.stderr), (0, ""))

    def make_clip(self, kind, frames=FRAMES):
        """The clip of known content, with pictures that refer to later ones."""
        clip = self.path("clip.mp4")
        clips.make(clip, kind, frames, "-bf", "3")
        return clip

    def count(self, video):
        return int(self.tool("ffprobe", "-v", "error", "-count_frames", "-select_streams", "v", "-show_entries",
                             "stream=nb_read_frames", "-of", "default=nk=1:nw=1", video))

    def run_here(self, clip, *app_args):
        p = self.start("fragctl", "run", "--output", "json", self.app, "--", "--clip", clip, "--folder", self.folder,
                       *app_args)
        self.assertEqual(p.wait(120), 0, p.stderr)
        return self.checked(p)

    def run_apart(self, clip, *app_args):
        driver = self.driver(self.app, "--output", "json", app_args=("--clip", clip, "--folder", self.folder, *app_args))
        workers = [self.worker("--once", fragments=f) for f in ("fragment1", "fragment2")]
        self.assert_done(driver, workers, 120)
        return self.checked(driver)

    def test_where_hosts_may_not_write_the_flag_is_named(self):
        if not cluster.landlock():
            self.skipTest("this kernel has no Landlock")
        self.env.pop("FRAG_ALLOW_WRITE", None)
        for folder in ("app", "work"):
            os.mkdir(self.path(folder))
        for writer in ("{type: video_recorder, parameters: {path: %s/out.mp4}}", "{type: image_writer, parameters: {path: %s/out.png}}"):
            app = self.write("app/app.yaml", WRITER % (REAL, writer % self.folder))
            driver = self.driver(app, "--output", "json")
            self.start("workerd", "--address", self.address, "--once", cwd=self.path("work"))
            self.assertEqual(driver.wait(), 1, driver.stderr)
            self.assertRegex(self.summary(driver)["reason"],
                             r"%s/out\.\w+: Permission denied.*; hosts of this worker may write below %s, %s only: .* --allow-write" %
                             (self.folder, self.path("app"), self.path("work")))

    def test_a_file_that_is_cut_off_is_damaged(self):
        whole = os.path.join(self.folder, "whole")
        for suffix, flags in ((".mkv", ()), (".mp4", ("-movflags", "+faststart")), (".live.mkv", ("-live", "1")),
                              (".avi", ("-c:v", "mjpeg"))):
            self.tool("ffmpeg", "-v", "error", "-i", REAL, "-t", "1", "-an", "-c:v", "copy", *flags, whole + suffix)
            with open(whole + suffix, "rb") as f:
                data = f.read()
            with open(whole + "_half" + suffix, "wb") as f:
                f.write(data[:len(data) // 2])
            for name, ignore, code in (("whole", "false", 0), ("whole_half", "false", 1), ("whole_half", "true", 0)):
                app = self.write("app.yaml", WRITER.replace("count: 5", "realtime: false, ignore_corrupted_entities: " + ignore)
                                 % (self.path(name + suffix), "{type: image_writer, parameters: {path: out.png}}"))
                run = self.start("fragctl", "run", app)
                self.assertEqual(run.wait(), code, run.stderr)
                if code == 1:
                    self.assertRegex(run.stderr, r"write.replayer: .*(ends after \d\.\d s (of \d\.\d s|inside a packet); is the file cut off\?|cannot read more of)")
                elif name == "whole_half":
                    self.assertRegex(run.stderr, "skipped [1-9][0-9]* damaged pieces of")
                    self.assertRegex(run.stdout, r"write\.replayer: [1-9][0-9]* damaged pieces skipped")

    def test_damage_inside_a_file_is_counted(self):
        """Also where FFmpeg finds its way again, or hides it, and returns nothing."""
        for suffix in (".mkv", ".mp4", ".ts"):
            name = self.path("damaged" + suffix)
            self.tool("ffmpeg", "-v", "error", "-i", REAL, "-t", "2", "-an", "-c:v", "copy", name)
            with open(name, "r+b") as f:
                f.seek(os.path.getsize(name) // 2)
                f.write(bytes(6000))
            for ignore, code in (("true", 0), ("true, decoder_threads: 4", 0), ("false", 1)):
                app = self.write("app.yaml", WRITER.replace("count: 5", "realtime: false, ignore_corrupted_entities: " + ignore)
                                 % (name, "{type: image_writer, parameters: {path: out.png}}"))
                run = self.start("fragctl", "run", app)
                self.assertEqual(run.wait(), code, name + run.stderr)
                if code == 0:
                    self.assertRegex(run.stdout, r"write\.replayer: [1-9][0-9]* damaged pieces skipped")
                else:
                    self.assertIn("cannot read more of " + name, run.stderr)

    def checked(self, program):
        summary = self.summary(program)
        self.assert_balanced(summary)
        self.assert_nothing_left()
        return summary

    def assert_all_crossed(self, summary, frames):
        for f in summary["flows"]:
            self.assertEqual((f["sent"], f["delivered"]), (frames, frames), f["from"])

    def check_known(self, frames=FRAMES):
        self.tool(os.path.join(clips.TOOLS, "check_clip"), "indices", self.path("out.mp4"), frames)
        self.tool(os.path.join(clips.TOOLS, "check_clip"), "boxes", self.path("boxes"), frames, WARMUP)

    def test_every_frame_in_order_and_boxes_about_the_square(self):
        self.assert_all_crossed(self.run_here(self.make_clip("moving")), FRAMES)
        self.check_known()

    def test_every_frame_in_order_and_boxes_about_the_square_over_two_hosts(self):
        self.assert_all_crossed(self.run_apart(self.make_clip("moving")), FRAMES)
        self.check_known()

    def test_mpeg4_where_there_is_no_h264(self):
        self.run_here(self.make_clip("moving", 60), "--codec", "mpeg4")
        self.check_known(60)

    def test_a_still_clip_has_no_boxes(self):
        self.run_here(self.make_clip("still", 60), "--min_area", "100")
        self.assertEqual(self.count(self.path("out.mp4")), 60)
        with open(self.path("boxes")) as f:
            self.assertEqual(f.read(), "")

    def test_real_time_is_kept(self):
        """60 frames at 25 a second: the last leaves 59 / 25 s after the first."""
        summary = self.run_here(self.make_clip("moving", 60), "--realtime", "true")
        self.assertGreaterEqual(summary["duration_ns"], 59 / 25 * 1e9 - 5e6)

    def test_a_stop_leaves_a_video_that_plays(self):
        """Asked to stop in the middle, the source ends at once and everything it sent is
        recorded."""
        driver = self.driver(self.app, "--output", "json",
                             app_args=("--clip", REAL, "--folder", self.folder, "--realtime", "true"))
        workers = [self.worker("--once", fragments=f) for f in ("fragment1", "fragment2")]
        self.wait_until("the recording", lambda: os.path.exists(self.path("out.mp4")))
        driver.signal(signal.SIGTERM)
        self.assert_done(driver, workers, 60)
        summary = self.checked(driver)
        frames = self.flow(summary, "fragment1.replayer.output")["delivered"]
        self.assertEqual(summary["result"], "stopped")
        self.assertTrue(0 < frames < 300, frames)
        self.assertEqual(self.count(self.path("out.mp4")), frames)

    def test_a_failure_leaves_a_video_that_plays(self):
        """The picture cannot be written: the application fails, and the recording so far is
        whole."""
        with open(self.path("file"), "w"):
            pass
        p = self.start("fragctl", "run", self.app, "--", "--clip", self.make_clip("moving"), "--folder", self.folder,
                       "--picture", "file/frame.png")
        self.assertEqual(p.wait(60), 1, p.stderr)
        self.assertRegex(p.stderr + p.stdout, r"fragment2\.picture: cannot write the picture .*file/frame.png: Not a directory")
        frames = self.count(self.path("out.mp4"))
        self.assertTrue(45 <= frames <= FRAMES, frames)
        self.tool(os.path.join(clips.TOOLS, "check_clip"), "indices", self.path("out.mp4"), frames)
        self.assert_nothing_left()

    def test_a_clip_that_is_not_there_is_told_before_anything_runs(self):
        p = self.start("fragctl", "run", self.app, "--", "--clip", "none.mp4", "--folder", self.folder)
        self.assertEqual(p.wait(60), 3, p.stderr)
        self.assertRegex(p.stderr, r"fragment1\.replayer: cannot read the video .*/none\.mp4: No such file")
        self.assert_nothing_left()

    PLAY = """
frag: 1
application: play
operators:
  replayer: {type: video_replayer, parameters: {path: "%s", count: 5, realtime: false, formats: "%s"}}
  recorder: {type: video_recorder, parameters: {path: "%s"}}
flows: [replayer.output -> recorder.input]
"""

    def play(self, path, formats="", *flags):
        p = self.start("fragctl", "run", self.write("play.yaml", self.PLAY % (path, formats, self.path("out.mp4"))),
                       *flags)
        return p.wait(30), p.stderr

    def test_a_playlist_is_no_media_file(self):
        os.symlink(REAL, self.path("clip.mp4"))
        concat = "ffconcat version 1.0\nfile clip.mp4\n"
        hls = "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nfile://%s\n#EXT-X-ENDLIST\n" % REAL
        for name, text, format in (("list.m3u8", hls, "hls"), ("cc.mp4", concat, "concat"),
                                   ("self.mp4", "ffconcat version 1.0\nfile self.mp4\n", "concat")):
            path = self.write(name, text)
            code, stderr = self.play(path)
            self.assertEqual(code, 1, stderr)
            self.assertIn("%s is of the format %s, which may open other files; give a media file itself, or allow the "
                          "format: formats: %s" % (path, format, format), stderr)
            self.assertFalse(os.path.exists(self.path("out.mp4")))
        code, stderr = self.play(self.path("list.m3u8"), "hls")
        self.assertEqual(code, 1, stderr)  # a whole mp4 is no segment: FFmpeg stays before it
        self.assertIn("cannot read more of %s" % self.path("list.m3u8"), stderr)
        self.tool("ffmpeg", "-v", "error", "-i", REAL, "-t", "1", "-c:v", "copy", self.path("part.ts"))
        code, stderr = self.play(self.write("good.m3u8", hls.replace("file://" + REAL, "part.ts")), "hls")
        self.assertEqual(code, 0, stderr)
        os.remove(self.path("out.mp4"))
        bare = self.write("bare.m3u8", hls.replace("#EXT-X-TARGETDURATION:10\n", ""))
        for formats in ("", "hls"):
            code, stderr = self.play(bare, formats)
            self.assertEqual(code, 1, stderr)
            self.assertIn("cannot open the video %s: it is a playlist without #EXT-X-TARGETDURATION" % bare, stderr)
        for formats in ("concat", "hls,concat"):
            code, stderr = self.play(self.path("cc.mp4"), formats)
            self.assertEqual(code, 0, stderr)
            self.assertEqual(self.count(self.path("out.mp4")), 5)
            os.remove(self.path("out.mp4"))
        code, stderr = self.play(self.write("far.mp4", "ffconcat version 1.0\nfile %s\n" % REAL), "concat")
        self.assertEqual(code, 1, stderr)
        self.assertIn("far.mp4: it lists a file by an absolute path, or with other characters", stderr)
        self.assertEqual(self.play(self.path("clip.mp4"))[0], 0)

    def test_what_decodes_is_logged(self):
        self.env["LD_LIBRARY_PATH"] = os.path.join(cluster.BUILD, "tests", "cuda")
        copied = "replayer: the CPU decodes, and frames are copied to GPU 0: "
        for parameters, words in (
                ("pool: $gpu, format: nv12", "replayer: GPU 0 decodes %s (h264)" % REAL),
                ("pool: $gpu, format: nv12, decoder: cpu", copied + "decoder says so"),
                ("pool: $gpu, format: rgb8", copied + "a GPU makes nv12 and p010, and format is rgb8"),
                ("format: rgb8", "replayer: the CPU decodes: no allocator of frames has memory of a GPU only"),
                ("pool: $host, format: nv12",
                 "replayer: the CPU decodes: no allocator of frames has memory of a GPU only"),
                ("pool: $host, decoder: cpu", "replayer: the CPU decodes: decoder says so")):
            app = self.write("gpu.yaml", """\
frag: 1
application: play
resources:
  gpu: {type: block_memory_pool, storage_type: 1, block_size: 2MiB, num_blocks: 8}
  host: {type: block_memory_pool, storage_type: 2, block_size: 2MiB, num_blocks: 8}
operators:
  replayer:
    type: video_replayer
    parameters: {path: %s, realtime: false, count: 2, %s}
  rx: {type: ping_tensor_rx}
flows: [replayer -> rx]
""" % (REAL, parameters))
            p = self.start("fragctl", "run", app)
            self.assertEqual(p.wait(), 0, p.stderr)
            self.assertEqual(p.stderr.count(" decodes"), 1, p.stderr)
            self.assertIn(words, p.stderr)

    def test_a_name_is_no_protocol(self):
        code, stderr = self.play("concat:%s|%s" % (REAL, REAL))
        self.assertEqual(code, 3, stderr)
        os.symlink(REAL, self.path("concat:x.mp4"))
        code, stderr = self.play(self.path("concat:x.mp4"))
        self.assertEqual(code, 0, stderr)

    def test_files_that_hold_nothing_are_told_apart(self):
        self.write("empty.mp4", "")
        whole = self.path("whole.mp4")
        self.tool("ffmpeg", "-v", "error", "-i", REAL, "-t", "1", "-an", "-c:v", "copy", whole)
        with open(whole, "rb") as f:
            data = f.read()
        with open(self.path("cut.mp4"), "wb") as f:
            f.write(data[:data.index(b"moov") - 4])
        self.write("text.mp4", "this is no video")
        for name, why in (("empty.mp4", "it is empty: what was to write it has written nothing"),
                          ("cut.mp4", r"it has no index \(moov\): it is cut off, or what wrote it was ended before"),
                          ("text.mp4", "Invalid data found when processing input; check path")):
            code, stderr = self.play(self.path(name))
            self.assertEqual(code, 1, stderr)
            self.assertRegex(stderr, r"cannot open the video %s: %s" % (self.path(name), why))
        os.rename(whole, self.path("50%d.mp4"))
        self.assertEqual(self.play(self.path("50%d.mp4"))[0], 0)
        for url in ("http://anna:pw@camera/x.mp4", "rtsp://anna:pw@camera/x"):
            code, stderr = self.play(url)
            self.assertEqual(code, 2, stderr)
            self.assertIn("://camera/x", stderr)
            self.assertIn("is a stream and no file; give it as url in place of path", stderr)
            self.assertNotIn("pw", stderr)

    def test_a_pipe_is_played_and_not_waited_for_at_a_stop(self):
        pipe = self.path("pipe")
        os.mkfifo(pipe)
        app = self.write("play.yaml", self.PLAY % (pipe, "", self.path("out.mp4")))
        for attempt in range(2):
            p = self.start("fragctl", "run", app, "--output", "json")
            p.wait_line("running")
            p.signal(signal.SIGINT)
            self.assertEqual(p.wait(9), 0, p.stderr)
        p = self.start("fragctl", "run", app)
        self.tool("ffmpeg", "-v", "error", "-y", "-i", REAL, "-frames:v", "5", "-an", "-c:v", "copy", "-f", "matroska", pipe)
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertEqual(self.count(self.path("out.mp4")), 5)

    def test_a_pipe_is_recorded_to_and_not_waited_for_at_a_stop(self):
        pipe = self.path("pipe.mp4")
        os.mkfifo(pipe)
        app = self.write("play.yaml", (self.PLAY % (REAL, "", pipe)).replace("count: 5", "repeat: true"))
        for has_reader in (False, True):
            reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK) if has_reader else None
            p = self.start("fragctl", "run", app, "--output", "json")
            p.wait_line("running")
            if has_reader:
                self.wait_until("the first bytes", lambda: select.select([reader], [], [], 0)[0])
            p.signal(signal.SIGINT)
            self.assertIn(p.wait(9), (0, 1) if has_reader else (0,), p.stderr)
            if has_reader:
                os.close(reader)
        app = self.write("play.yaml", self.PLAY % (REAL, "", pipe))
        with open(self.path("copy.mp4"), "wb") as copy:
            cat = subprocess.Popen(["cat", pipe], stdout=copy)
            p = self.start("fragctl", "run", app)
            self.assertEqual(p.wait(), 0, p.stderr)
            cat.wait(60)
        self.assertEqual(self.count(self.path("copy.mp4")), 5)

    def test_a_recording_does_not_follow_a_link(self):
        kept = self.write("kept", "kept")
        os.symlink(kept, self.path("out.mp4"))
        code, stderr = self.play(REAL, "", *REPLACE)
        self.assertEqual(code, 0, stderr)
        self.assertEqual(self.count(self.path("out.mp4")), 5)
        self.assertFalse(os.path.islink(self.path("out.mp4")))
        with open(kept) as f:
            self.assertEqual(f.read(), "kept")

    def test_a_recording_stays_unless_it_is_to_be_overwritten(self):
        def recordings():
            return {(f.name, f.inode()) for f in os.scandir(self.folder) if "out" in f.name}

        for name, flags in (("out.mp4", ()), ("out-2.mp4", ()), ("out-3.mp4", ()), ("out.mp4", REPLACE)):
            before = recordings()
            code, stderr = self.play(REAL, "", *flags)
            self.assertEqual(code, 0, stderr)
            self.assertIn("recorded 5 frames in " + self.path(name), stderr)
            self.assertEqual({n for n, _ in recordings() - before}, {name})

    def test_the_real_clip_is_itself_outside_the_boxes(self):
        clip = self.path("real.mp4")
        self.tool("ffmpeg", "-v", "error", "-i", REAL, "-frames:v", REAL_FRAMES, "-an", "-c:v", "copy", clip)
        self.assert_all_crossed(self.run_apart(clip, "--min_area", "400"), REAL_FRAMES)
        self.assertEqual(self.count(self.path("out.mp4")), REAL_FRAMES)
        said = self.tool(os.path.join(clips.TOOLS, "check_clip"), "outside", self.path("out.mp4"), clip, self.path("boxes"),
                         768, 576, REAL_FRAMES)
        self.assertGreaterEqual(float(re.search(r"([0-9.]+) dB", said).group(1)), 30.0)
        with open(self.path("boxes")) as f:
            boxed = {line.split()[0] for line in f}
        self.assertGreater(len(boxed), REAL_FRAMES - WARMUP - 10, "people walk through nearly all of it")
        with open(self.path("frame.png"), "rb") as f:
            self.assertEqual(f.read(8), b"\x89PNG\r\n\x1a\n")

    def test_the_example_records_every_frame_and_a_picture(self):
        p = self.start("fragctl", "run", "--output", "json", "--set", "fragment1.replayer.count=100", EXAMPLE, "--",
                       "--realtime", "false", "--out", self.folder, "--picture", "70")
        self.assertEqual(p.wait(120), 0, p.stderr)
        self.assert_all_crossed(self.checked(p), 100)
        self.assertEqual(self.count(self.path("boxes.mp4")), 100)
        with open(self.path("frame.png"), "rb") as f:
            self.assertEqual(f.read(8), b"\x89PNG\r\n\x1a\n")
