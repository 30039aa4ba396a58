# SPDX-License-Identifier: Apache-2.0
"""Manual pages and files of settings for systemd, made of what the programs print for --help.

mk/docs.py writes and checks them, so that a package can be built on a machine that cannot run the
programs.
"""
import re

SERVICES = ("driver", "worker")
PROGRAMS = {"driver": "driverd", "worker": "workerd", "web": "fragctl web"}  # of services
# These are read from the command line only (base/flags.h: no_env, times).
NO_VARIABLE = ("env-file", "verbose", "quiet", "help", "version", "open")
LEVELS = "trace, debug, info, warn, error or off; default info"


class Help:
    """What a program prints for --help."""

    def __init__(self, text):
        text, _, self.example = text.partition("\nExample:\n  ")
        usage, headline, rest = text.split("\n\n", 2)
        self.headline = headline.replace("\n", " ")
        self.usage = re.sub(r"\n +", " ", usage).split(" ", 2)[2]
        rest = re.sub(r"\n {45}", " ", rest)  # a long text goes on below its begin
        # (letter, name, value, help); the value is empty for a switch
        self.flags = re.findall(r"^  (?:-(\w), |    )--([\w-]+)(?: (\S+))? +(\S.*)$", rest, re.M)


def variable(flag):
    return "FRAG_" + flag.upper().replace("-", "_")


def settings(service, help_text):
    """The file of a service's settings: every flag, commented."""
    lines = ["# SPDX-License-Identifier: Apache-2.0",
             "# Settings of frag-%s.service: the flags of %s, a line each. Remove the # of those that you set," %
             (service, PROGRAMS[service]),
             "# then: systemctl restart frag-%s. The values shown say what is expected." % service]
    for _, name, value, text in Help(help_text).flags:
        if name not in NO_VARIABLE:
            lines += ["", "# " + text, "#%s=%s" % (variable(name), value or "true")]
    lines += ["", "# the lowest level that is logged: " + LEVELS, "#FRAG_LOG_LEVEL=info"]
    return "\n".join(lines) + "\n"


def roff(text):
    """Text as troff prints it unchanged."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("'", "\\(aq")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def options(flags):
    out = []
    for letter, name, value, text in flags:
        names = ("\\fB\\-%s\\fR, " % letter if letter else "") + "\\fB%s\\fR" % roff("--" + name)
        out += [".TP", names + (" \\fI%s\\fR" % roff(value) if value else ""), roff(text)]
    return out


def begin(name, section, headline):
    return ['.\\" SPDX-License-Identifier: Apache-2.0', ".TH %s %d" % (name.upper(), section), ".SH NAME",
            "%s \\- %s" % (name, roff(headline[0].lower() + headline[1:].rstrip("."))), ".SH SYNOPSIS"]


def end(exit_codes, files, see):
    out = [".SH ENVIRONMENT", "A flag that is not given is taken from the environment:",
           roff("--some-flag") + " from FRAG_SOME_FLAG.", ".TP", "FRAG_LOG_LEVEL",
           "the lowest level that is logged: " + LEVELS, ".SH EXIT STATUS"]
    for code, meaning in exit_codes:
        out += [".TP", roff(code), roff(meaning)]
    if files:
        out += [".SH FILES"]
    for path, what in files:
        out += [".TP", "\\fI%s\\fR" % roff(path), roff(what)]
    return "\n".join(out + [".SH SEE ALSO", see, ".br", "The documents in share/doc/frag/docs."]) + "\n"


def daemon_page(service, help_text, exit_codes):
    program, parsed = service + "d", Help(help_text)
    files = [("/etc/frag/%s.env" % service, "settings of frag-%s.service" % service),
             ("/var/lib/frag-%s" % service, "what the service keeps")]
    if service == "driver":
        files += [("/run/frag/PORT.sock", "the socket for clients of this machine")]
    other = next(s for s in SERVICES if s != service)
    out = begin(program, 8, parsed.headline) + ["\\fB%s\\fR %s" % (program, roff(parsed.usage)), ".SH DESCRIPTION",
                                                roff(parsed.headline)]
    out += ["SIGTERM stops it in order. SIGHUP reads its keys again.",
            "It reports to systemd that it is ready and alive (sd_notify).", ".SH OPTIONS", *options(parsed.flags)]
    return "\n".join(out) + "\n" + end(exit_codes, files, "%sd(8), fragctl(1), systemd.service(5)" % other)


def command_page(help_text, verbs, exit_codes):
    """fragctl(1); verbs: {verb: what it prints for --help}."""
    headlines = dict(re.findall(r"^  (\w+) +(\S.*)$", help_text, re.M))
    out = begin("fragctl", 1, help_text.split("\n\n")[1]) + ["\\fBfragctl\\fR VERB [flags]", ".SH DESCRIPTION"]
    for verb, headline in headlines.items():
        out += [".TP", "\\fB%s\\fR" % verb, roff(headline)]
    for verb, text in verbs.items():
        parsed = Help(text)
        usage = parsed.usage.partition(" ")[2] if parsed.usage.startswith(verb + " ") else parsed.usage
        out += [".SH %s" % verb.upper(), "\\fBfragctl %s\\fR %s" % (verb, roff(usage)), ".PP", roff(parsed.headline),
                *options(parsed.flags)]
        if parsed.example:
            out += [".PP", "Example:", ".PP", "\\fB%s\\fR" % roff(parsed.example.strip())]
    return "\n".join(out) + "\n" + end(exit_codes, [], "driverd(8), workerd(8)")


def made(run, exit_codes):
    """{path: text} of all that is made. run(program, *words): what it prints."""
    files = {}
    for service in SERVICES:
        text = run(service + "d", "--help")
        files["deploy/%s.env" % service] = settings(service, text)
        files["deploy/man/%sd.8" % service] = daemon_page(service, text, exit_codes)
    files["deploy/web.env"] = settings("web", run("fragctl", "web", "--help"))
    text = run("fragctl", "--help")
    verbs = {verb: run("fragctl", verb, "--help") for verb in re.findall(r"^  (\w+) ", text, re.M)}
    files["deploy/man/fragctl.1"] = command_page(text, verbs, exit_codes)
    return files
