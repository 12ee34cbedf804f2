package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadProgram compares with the go command what identifies a program of Go, and other files with their hash.
func TestReadProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	id, err := exec.CommandContext(t.Context(), "go", "tool", "buildid", self).Output()
	if err != nil {
		t.Fatal(err)
	}
	if p, err := ReadProgram("/proc/self/exe"); err != nil || p.GoBuildID != strings.TrimSpace(string(id)) ||
		p.SHA256 != "" || p.Path != self {
		t.Errorf("%+v, %v, want %s of %s", p, err, id, self)
	}
	script := filepath.Join(t.TempDir(), "script")
	text := []byte("\x7fELF, but no program")
	if err := os.WriteFile(script, text, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{script, "/bin/sh"} {
		if path != script {
			if text, err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
		sum := sha256.Sum256(text)
		if p, err := ReadProgram(path); err != nil || p.SHA256 != hex.EncodeToString(sum[:]) || p.GoBuildID != "" {
			t.Errorf("%s: %+v, %v", path, p, err)
		}
	}
	if _, err := ReadProgram(script + "-not"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}
