package e2e

import (
	"strings"
	"testing"
)

// steering is a shell command. Its output sets a terminal's title, clears the screen, reverses the
// text direction, and starts an escape sequence with a single C1 character.
const steering = `printf 'bad \033]0;owned\007 \033[2J \342\200\256 \302\2332J\n'`

// TestWorkloadsEscapes checks that output of a workload or its parser cannot control the terminal,
// neither during the run nor when the bundle is shown, and that the output is readable in escaped
// form.
func TestWorkloadsEscapes(t *testing.T) {
	t.Parallel()
	command := `[sh, -c, "` + strings.ReplaceAll(steering, `\`, `\\`) + ` | tee /dev/stderr; exit 3"]`
	for _, tt := range []struct {
		name, file string
		code       int
	}{
		{"a workload that fails", runsMine + class("hostdir") + workload(command), 2},
		{"a parser that fails", printing("#!/bin/sh\n" + steering + "\n" + steering + " >&2\nexit 9\n"), 0},
		{"a parser that prints no figure", printing("#!/bin/sh\n" + steering + "\n"), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			r := b.bench(tt.file).wants(t, tt.code)
			b.harmless(r)
			if !strings.Contains(r.stdout+r.stderr, `\x1b]0;owned`) {
				t.Errorf("what was printed cannot be read:\n%v", r)
			}
			show := b.run("show", b.bundle()).wants(t, 0)
			b.harmless(show)
			if !strings.Contains(show.stdout, "owned") {
				t.Errorf("show does not say it:\n%v", show)
			}
			b.harmless(b.run("show", b.bundle(), "--events").wants(t, 0))
			b.harmless(b.run("show", b.bundle(), "--output", "json").wants(t, 0))
			for _, format := range []string{"csv", "json", "perfetto", "otlp"} {
				b.harmless(b.run("export", "--format", format, b.bundle()).wants(t, 0))
			}
			b.harmless(b.run("list", b.dir).wants(t, 0))
		})
	}
}

// harmless fails the test if a command prints terminal control characters while its output is not a
// terminal.
func (b *box) harmless(r result) {
	b.Helper()
	for where, text := range map[string]string{"stdout": r.stdout, "stderr": r.stderr} {
		if i := strings.IndexFunc(text, steers); i >= 0 {
			b.Errorf("cnsbench %s prints %q on %s", strings.Join(r.args, " "), text[max(0, i-80):min(len(text), i+40)],
				where)
		}
	}
}

// steers reports whether a character controls a terminal: all control characters except the line
// break, and those that change the text direction.
func steers(r rune) bool {
	return r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
