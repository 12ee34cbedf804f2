package agent_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/agent"
)

// TestInputFiles checks that input files are complete and have their modes before the command starts, and that the
// agent's reports reach the sink of the session.
func TestInputFiles(t *testing.T) {
	t.Run("unix", func(t *testing.T) { testInputFiles(t, newFixture(t)) })
	t.Run("tls", func(t *testing.T) { testInputFiles(t, newTLSFixture(t)) })
}

func testInputFiles(t *testing.T, f *fixture) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "made", "for it")
	script, data, empty := filepath.Join(from, "script"), filepath.Join(from, "data"), filepath.Join(from, "empty")
	for name, text := range map[string][]byte{
		script: []byte("#!/bin/sh\nwc -c < \"$1\"; wc -c < \"$2\"; sha256sum < \"$1\"; echo aside >&2\n"),
		data:   bytes.Repeat([]byte("0123456789"), 1<<19), empty: nil} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	capture := agent.NewCapture(1 << 20)
	s := f.expect("p", agent.Options{Sink: capture, Files: []agent.InputFile{
		{Source: empty, Path: filepath.Join(to, "empty"), Mode: 0o444}, {Source: script,
			Path: filepath.Join(to, "script"), Mode: 0o755}, {Source: data, Path: filepath.Join(to,
			"data"), Mode: 0o444}}})
	f.wrap(s, filepath.Join(to, "script"), filepath.Join(to, "data"), filepath.Join(to, "empty"))
	end := f.done(s)
	printed, err := capture.Outcome(end.ContainerEnd, nil)
	if lines := strings.Fields(string(printed)); err != nil || end.Failure != nil || len(lines) < 3 ||
		lines[0] != "5242880" || lines[1] != "0" {
		t.Errorf("%q, %v, %+v", printed, err, end)
	}
	if words := capture.StderrTail(); words != "aside" {
		t.Errorf("last words %q", words)
	}
	if strings.Contains(f.sink.Logs(), "aside") {
		t.Error("the server's sink hears it too")
	}
	if fi, err := os.Stat(filepath.Join(to, "data")); err != nil || fi.Mode() != 0o444 {
		t.Errorf("%v, %v", fi, err)
	}
}

// TestInputFilesFail checks that a file that cannot be read or written ends the session before the command starts.
func TestInputFilesFail(t *testing.T) {
	f := newFixture(t)
	from := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(from, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, gift := range map[string]agent.InputFile{
		"unwritable": {Source: from, Path: from + "/below a file"},
		"unreadable": {Source: from + ".none", Path: filepath.Join(t.TempDir(), "x")},
	} {
		s := f.expect(name, agent.Options{Files: []agent.InputFile{gift}})
		f.wrap(s, "echo", "it ran")
		if _, _, err := s.Started(context.Background()); err == nil {
			t.Errorf("%s: it was started", name)
		}
		if end := f.done(s); end.Started || end.Failure == nil {
			t.Errorf("%s: %+v", name, end)
		}
	}
	if strings.Contains(f.sink.Logs(), "it ran") {
		t.Error("it ran")
	}
}
