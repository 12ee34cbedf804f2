package hostile

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Outside is what hostile bundles point at: a tree of files, of which nothing may change.
type Outside struct {
	Dir string
	// URL is a server and Socket a unix socket. A command may connect to them only if its command line names them.
	URL, Socket string
	// RunID is that of a registered run of this user; PID that of a process of somebody else.
	RunID string
	PID   int
}

// file is a file in the tree, secret one with credentials, storage a directory that looks like the storage of a run.
func (o *Outside) file() string    { return filepath.Join(o.Dir, "canary") }
func (o *Outside) secret() string  { return filepath.Join(o.Dir, "secret") }
func (o *Outside) storage() string { return filepath.Join(o.Dir, "storage") }
func (o *Outside) scratch() string { return filepath.Join(o.Dir, "cnsbench-"+runID) }

// Secret is in the file with credentials, and must be sent nowhere.
const Secret = "swordfish"

// Make makes the tree, with the marks and the state that a forged identity needs.
func (o *Outside) Make(tb testing.TB) {
	tb.Helper()
	mark := runID + " " + nonce + "\n"
	state, _ := json.Marshal(map[string]any{"ID": "v", "Row": map[string]any{"ID": "v", // texts can always be encoded
		"Published": map[string]any{filepath.Join(o.Dir, "precious"): map[string]any{}}}})
	driver := filepath.Join(o.storage(), runID, "hostdir", "state")
	for path, content := range map[string]string{
		o.file(): "sing", filepath.Join(o.Dir, "precious", "canary"): "sing", o.secret(): "authorization=" + Secret + "\n" +
			"accesskey=" + Secret + "\nsecretkey=" + Secret + "\n", filepath.Join(o.scratch(), ".cnsbench-run"): mark,
		filepath.Join(o.storage(), runID, ".cnsbench-run"): mark,
		filepath.Join(driver, "volumes.jsonl"):             string(state) + "\n",
	} {
		write(tb, path, content)
	}
	for _, err := range []error{os.Chmod(o.secret(), 0o600),
		os.Symlink(o.file(), filepath.Join(driver, "volumes.jsonl.new")),
		syscall.Mkfifo(filepath.Join(o.Dir, "pipe"), 0o644)} {
		if err != nil {
			tb.Fatal(err)
		}
	}
}

// Digest is of all that the tree has: paths, modes, times and contents.
func (o *Outside) Digest(tb testing.TB) string {
	tb.Helper()
	sum := sha256.New()
	err := filepath.WalkDir(o.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(sum, path, info.Mode(), info.Size(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintln(sum, string(content))
		}
		return nil
	})
	if err != nil {
		tb.Error(err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}
