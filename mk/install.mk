# SPDX-License-Identifier: Apache-2.0
prefix ?= /usr/local
libdir ?= $(prefix)/lib
sysconfdir ?= $(if $(filter /usr,$(prefix)),/etc,$(prefix)/etc)
systemddir ?= $(prefix)/lib/systemd
sysusersdir ?= $(prefix)/lib/sysusers.d
tmpfilesdir ?= $(prefix)/lib/tmpfiles.d
mandir ?= $(prefix)/share/man
SERVICES = driver worker web
MAN_PAGES = man8/driverd.8 man8/workerd.8 man1/fragctl.1
BUILT_PROGRAMS = $(wildcard $(B)/bin/*)
PROGRAMS = driverd workerd fragctl
BUILT_PLUGINS = $(wildcard $(B)/lib/frag/plugins/*.so)
EXAMPLE_FILES := $(shell find examples -type f ! -name '*.so' ! \( -name 'test_*' ! -name '*.c' \) ! -path '*/out/*')
BUILT_MODULES = $(wildcard $(B)/lib/frag/modules/*.so)

# frag.pc of the build tree lets the examples build before anything is installed, with the same
# command line as afterwards.
pc_file = printf '%s\n' 'prefix=$(1)' 'includedir=$(2)' 'libdir=$(3)' '' 'Name: frag' \
	'Description: Streaming graphs across machines: operators and composers' \
	'Version: $(VERSION)' \
	'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lfrag'
$(B)/lib/pkgconfig/frag.pc: Makefile mk/install.mk
	@mkdir -p $(@D)
	@$(call pc_file,$(abspath $(B)),$(abspath libfrag/include),$(abspath $(B)/lib)) >$@
all: $(B)/lib/pkgconfig/frag.pc

# What is installed has no asserts: it is built with NDEBUG=1 into $(B)-ndebug. `make install
# NDEBUG=` installs what is in $(B), as it was built.
.PHONY: install install-here install-services uninstall
install:
	@$(MAKE) --no-print-directory \
		$(if $(filter undefined,$(origin NDEBUG)),B=$(B)-ndebug NDEBUG=1) install-here
install-here: all install-services
	install -d $(DESTDIR)$(prefix)/bin $(DESTDIR)$(libdir)/pkgconfig \
		$(DESTDIR)$(libdir)/frag/plugins \
		$(DESTDIR)$(libdir)/frag/modules $(DESTDIR)$(libdir)/frag/extensions \
		$(DESTDIR)$(prefix)/libexec/frag $(DESTDIR)$(prefix)/include/frag \
		$(DESTDIR)$(prefix)/share/doc/frag/docs/pictures \
		$(DESTDIR)$(prefix)/share/doc/frag/docs/site $(DESTDIR)$(prefix)/share/frag
	install -m 755 $(BUILT_PROGRAMS) $(DESTDIR)$(prefix)/bin
	install -m 755 $(B)/libexec/frag/fraghost $(DESTDIR)$(prefix)/libexec/frag
	install -m 644 $(B)/lib/libfrag.so.1 $(DESTDIR)$(libdir)
	ln -sf libfrag.so.1 $(DESTDIR)$(libdir)/libfrag.so
	install -m 644 $(BUILT_PLUGINS) $(DESTDIR)$(libdir)/frag/plugins
	install -m 644 $(BUILT_MODULES) $(DESTDIR)$(libdir)/frag/modules
	install -m 644 libfrag/include/frag/*.h $(DESTDIR)$(prefix)/include/frag
	install -D -m 644 fragctl/completion/fragctl.bash \
		$(DESTDIR)$(prefix)/share/bash-completion/completions/fragctl
	install -D -m 644 fragctl/completion/_fragctl \
		$(DESTDIR)$(prefix)/share/zsh/site-functions/_fragctl
	$(call pc_file,$(prefix),$(prefix)/include,$(libdir)) >$(DESTDIR)$(libdir)/pkgconfig/frag.pc
	for f in $(EXAMPLE_FILES); do install -D -m 644 $$f $(DESTDIR)$(prefix)/share/frag/$$f || \
		exit 1; done
	install -m 644 $(wildcard README.md HACKING.md LICENSE CHANGELOG.md) \
		$(DESTDIR)$(prefix)/share/doc/frag
	install -m 644 $(wildcard docs/*.*) $(DESTDIR)$(prefix)/share/doc/frag/docs
	install -m 644 $(wildcard docs/site/*.md) $(DESTDIR)$(prefix)/share/doc/frag/docs/site
	install -m 644 $(wildcard docs/pictures/*) $(DESTDIR)$(prefix)/share/doc/frag/docs/pictures
	ln -sfn ../../frag/examples $(DESTDIR)$(prefix)/share/doc/frag/examples
	for f in $(notdir $(wildcard deploy/grafana/*)); do install -D -m 644 deploy/grafana/$$f \
		$(DESTDIR)$(prefix)/share/doc/frag/grafana/$$f || exit 1; done

# What systemd needs to run the daemons. Settings that are there already stay as they are.
install-services:
	install -d $(DESTDIR)$(systemddir)/system $(DESTDIR)$(sysusersdir) \
		$(DESTDIR)$(tmpfilesdir) $(DESTDIR)$(sysconfdir)/frag
	for s in $(SERVICES); do \
		sed 's,@bindir@,$(prefix)/bin,; s,@sysconfdir@,$(sysconfdir),; s,@tmpfilesdir@,$(tmpfilesdir),' \
			deploy/systemd/frag-$$s.service \
			>$(DESTDIR)$(systemddir)/system/frag-$$s.service && \
		{ [ -e $(DESTDIR)$(sysconfdir)/frag/$$s.env ] || install -m 644 deploy/$$s.env \
			$(DESTDIR)$(sysconfdir)/frag; } || exit 1; done
	install -m 644 deploy/systemd/frag.sysusers $(DESTDIR)$(sysusersdir)/frag.conf
	sed 's,@sysconfdir@,$(sysconfdir),' deploy/systemd/frag.tmpfiles \
		>$(DESTDIR)$(tmpfilesdir)/frag.conf
	for p in $(MAN_PAGES); do \
		install -D -m 644 deploy/man/$${p##*/} $(DESTDIR)$(mandir)/$$p || exit 1; done
	for p in $(PROGRAMS:fragctl=); do \
		install -D -m 644 deploy/completion/$$p \
			$(DESTDIR)$(prefix)/share/bash-completion/completions/$$p && \
		install -D -m 644 deploy/completion/_$$p \
			$(DESTDIR)$(prefix)/share/zsh/site-functions/_$$p || exit 1; done

# Settings that were changed stay. lib/frag/extensions is removed only when it is empty: its
# libraries belong to the user.
uninstall:
	rm -f $(PROGRAMS:%=$(DESTDIR)$(prefix)/share/bash-completion/completions/%) \
		$(PROGRAMS:%=$(DESTDIR)$(prefix)/share/zsh/site-functions/_%)
	rm -f $(SERVICES:%=$(DESTDIR)$(systemddir)/system/frag-%.service) \
		$(DESTDIR)$(sysusersdir)/frag.conf $(DESTDIR)$(tmpfilesdir)/frag.conf \
		$(MAN_PAGES:%=$(DESTDIR)$(mandir)/%)
	for s in $(SERVICES); do cmp -s deploy/$$s.env $(DESTDIR)$(sysconfdir)/frag/$$s.env && \
		rm $(DESTDIR)$(sysconfdir)/frag/$$s.env; done; :
	rmdir $(DESTDIR)$(sysconfdir)/frag 2>/dev/null || :
	rm -f $(PROGRAMS:%=$(DESTDIR)$(prefix)/bin/%) $(DESTDIR)$(libdir)/libfrag.so \
		$(DESTDIR)$(libdir)/libfrag.so.1 \
		$(DESTDIR)$(libdir)/pkgconfig/frag.pc
	rm -rf $(DESTDIR)$(libdir)/frag/plugins $(DESTDIR)$(libdir)/frag/modules \
		$(DESTDIR)$(prefix)/libexec/frag \
		$(DESTDIR)$(prefix)/include/frag $(DESTDIR)$(prefix)/share/doc/frag \
		$(DESTDIR)$(prefix)/share/frag
	rmdir $(DESTDIR)$(libdir)/frag/extensions $(DESTDIR)$(libdir)/frag 2>/dev/null || :
