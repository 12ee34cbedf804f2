package enginetest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/engine"
)

// testParser shows that a script reads only its file, that its output is returned whole, that a failure is
// reported with its last lines, and that nothing of it remains in the bundle or on the platform.
func testParser(t *testing.T, s *session) {
	parser, ok := s.engine.(engine.Parser)
	if !ok {
		t.Skip("the engine has no parsers")
	}
	file := filepath.Join(t.TempDir(), "out put.txt") // a name that a shell could take for two
	if err := os.WriteFile(file, bytes.Repeat([]byte("0123456789abcde\n"), 400_000), 0o644); err != nil {
		t.Fatal(err)
	}
	patience := 5 * time.Second
	if s.target.Timeout > 0 {
		patience = s.target.Timeout / 4 // a pod has to start, too
	}
	t.Run("scripts", func(t *testing.T) { testScripts(t, parser, file, patience) })
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	heard := slices.DeleteFunc(keys(s.sink.output),
		func(name string) bool { return !strings.HasPrefix(name, "parse-") })
	if len(s.sink.starts)+len(s.sink.ends)+len(heard) > 0 {
		t.Errorf("the record hears of parsers: %v %v %v", s.sink.starts, s.sink.ends, heard)
	}
}

// testScripts runs scripts of all kinds concurrently.
func testScripts(t *testing.T, parser engine.Parser, file string, patience time.Duration) {
	for i, tt := range []struct {
		name, script, want string
		bytes              int    // in place of want
		fails              string // parts of the error, separated by |
		killed             bool
	}{
		{name: "reads", script: `#!/bin/sh
set -e
wc -c < "$1"
basename "$1"
echo scratch > /tmp/file && cat /tmp/file
if (: >> "$1") 2>/dev/null; then echo the file could be changed; fi
if [ -e /var/run/secrets/kubernetes.io ]; then echo there are credentials; fi
ls /data /output 2>/dev/null || true
echo beside the point >&2
`, want: "6400000\nout put.txt\nscratch\n"},
		{name: "fails", script: "#!/bin/sh\necho partial; echo first >&2; echo no-such-luck >&2; exit 3\n",
			want: "partial\n", fails: "exit code 3|no-such-luck"},
		{name: "is slow", script: "#!/bin/sh\ntrap '' TERM\nsleep 600\n", fails: "killed", killed: true},
		{name: "has no interpreter", script: "#!/no/such/interpreter\n", fails: "/no/such/interpreter"},
		{name: "prints too much", script: "#!/bin/sh\nhead -c 20000000 /dev/zero\n", bytes: engine.MaxPrinted,
			fails: "more than 16 MiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if tt.killed {
				ctx, cancel = context.WithTimeout(t.Context(), patience)
			}
			defer cancel()
			began := time.Now()
			printed, err := parser.Parse(ctx, engine.ParseRequest{Name: "parse-" + string(rune('a'+i)),
				Script: engine.Script{Text: tt.script, Image: ToolsImage}, File: file})
			if took := time.Since(began); tt.killed && (took < patience || took > 2*patience+10*time.Second) {
				t.Errorf("a script that does not end was ended after %v, of %v", took, patience)
			}
			if tt.bytes > 0 && len(printed) != tt.bytes || tt.bytes == 0 && string(printed) != tt.want {
				t.Errorf("printed %d bytes %.200q, want %q", len(printed), printed, tt.want)
			}
			if (err != nil) != (tt.fails != "") {
				t.Fatalf("error %v, want %q", err, tt.fails)
			}
			for _, part := range strings.Split(tt.fails, "|") {
				if err != nil && !strings.Contains(err.Error(), part) {
					t.Errorf("error %v, want %q", err, part)
				}
			}
		})
	}
}

// ToolsImage has a shell and common programs, for platforms with images.
const ToolsImage = "localhost/cnsbench-tools:test"
