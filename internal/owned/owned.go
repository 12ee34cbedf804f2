// Package owned identifies what belongs to a run, so that a clean-up removes nothing else: objects on a cluster carry a
// digest of the run's identity, directories on a machine its mark. docs/design/cleanup.md describes how each kind of
// object is recognised.
package owned

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Identity names a run and its directories. On a cluster it is in run.json, else in the registry of the machine.
type Identity struct {
	RunID string `json:"runID"`
	// Nonce is drawn for the run; marks in directories and environments of processes carry it.
	Nonce string `json:"nonce"`
	// Scratch is the run's own directory. Storage is the directory below which built-in CSI drivers keep
	// volumes, in a directory named after the run.
	Scratch string `json:"scratch,omitempty"`
	Storage string `json:"storage,omitempty"`
	// Namespace and Server are the place of the run's objects on a cluster.
	Namespace string `json:"namespace,omitempty"`
	Server    string `json:"server,omitempty"`
}

// Refusal is the error for something that cannot be proved to belong to the run and is left alone.
type Refusal struct{ Why string }

func (r *Refusal) Error() string { return "left alone: " + r.Why }

// Refuse returns a Refusal.
func Refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

const (
	// MarkFile is the file in a directory of a run that identifies the run.
	MarkFile = ".cnsbench-run"
	// Variable is the environment variable of a run's processes; agents do not pass it on.
	Variable = "CNSBENCH_AGENT_RUN"
	// scratchPrefix precedes the run's id in the name of its scratch directory.
	scratchPrefix = "cnsbench-"
	nonceBytes    = 16
)

// New draws the identity of a run.
func New(runID string) Identity {
	b := make([]byte, nonceBytes)
	_, _ = rand.Read(b) // never fails
	return Identity{RunID: runID, Nonce: hex.EncodeToString(b)}
}

var runIDs = regexp.MustCompile(`^[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$`)

// Check refuses an invalid identity, with which nothing can be proved.
func (id *Identity) Check() error {
	switch {
	case id.RunID == "" || id.Nonce == "":
		return Refuse("the bundle has no identity of its run: run.json is missing, or an older version wrote it")
	case CheckRunID(id.RunID) != nil:
		return CheckRunID(id.RunID)
	case len(id.Nonce) != 2*nonceBytes:
		return Refuse("the identity's nonce has %d digits, want %d", len(id.Nonce), 2*nonceBytes)
	}
	return nil
}

// names matches names of namespaces.
var names = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// OnCluster refuses an identity without the cluster and the namespace of its run.
func (id *Identity) OnCluster() error {
	if err := id.Check(); err != nil {
		return err
	}
	if !names.MatchString(id.Namespace) || id.Server == "" {
		return Refuse("run.json does not say on which cluster and in which namespace run %s was: "+
			"an older version wrote it", id.RunID)
	}
	return nil
}

// proofBytes keeps the value of a label short.
const proofBytes = 16

// Proof is the label value of the run's objects on a cluster: a digest of the nonce, so that readers of the
// objects do not learn the nonce.
func (id *Identity) Proof() string {
	sum := sha256.Sum256([]byte(id.text()))
	return hex.EncodeToString(sum[:proofBytes])
}

// CheckRunID refuses an invalid run id.
func CheckRunID(runID string) error {
	if !runIDs.MatchString(runID) {
		return Refuse("%q is not the id of a run", runID)
	}
	return nil
}

// ScratchName returns the name of the scratch directory of a run.
func ScratchName(runID string) string { return scratchPrefix + runID }

// OwnsScratch refuses a scratch directory that is not named after the run.
func (id *Identity) OwnsScratch() error {
	if err := id.Check(); err != nil {
		return err
	}
	clean := filepath.IsAbs(id.Scratch) && filepath.Clean(id.Scratch) == id.Scratch
	if !clean || filepath.Base(id.Scratch) != ScratchName(id.RunID) {
		return Refuse("%q is not the scratch directory of run %s", id.Scratch, id.RunID)
	}
	return nil
}

// StorageDir returns the directory below Storage in which built-in drivers keep this run's volumes.
func (id *Identity) StorageDir() (string, error) {
	if err := id.Check(); err != nil {
		return "", err
	}
	if !filepath.IsAbs(id.Storage) || filepath.Clean(id.Storage) != id.Storage {
		return "", Refuse("%q is not a storage directory of run %s", id.Storage, id.RunID)
	}
	return filepath.Join(id.Storage, id.RunID), nil
}

// text is the content of a mark.
func (id *Identity) text() string { return id.RunID + " " + id.Nonce + "\n" }

// Make creates a directory, whose parent exists, and marks it.
func (id *Identity) Make(dir string, mode fs.FileMode) error {
	if err := os.Mkdir(dir, mode); err != nil {
		return err
	}
	return id.Mark(dir)
}

// Mark writes the identity into a directory that the run has just created.
func (id *Identity) Mark(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, MarkFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(id.text())
	return errors.Join(err, f.Close())
}

// Owns refuses a directory that this run did not make: it is not marked with the identity, or it, or the
// mark, belongs to another user. A missing directory is no error.
func (id *Identity) Owns(dir string) error {
	root, err := id.open(dir)
	if root != nil {
		err = errors.Join(err, root.Close())
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// open opens a directory of the run; the error is fs.ErrNotExist if it is missing. Operations on the result
// cannot leave the directory.
func (id *Identity) open(dir string) (*os.Root, error) {
	if err := id.Check(); err != nil {
		return nil, err
	}
	before, err := os.Lstat(dir)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	if !before.IsDir() {
		return nil, Refuse("%s is not a directory", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	if err := id.verify(root, before, dir); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

func (id *Identity) verify(root *os.Root, before fs.FileInfo, dir string) error {
	now, err := root.Stat(".")
	if err != nil {
		return err
	}
	if !os.SameFile(before, now) {
		return Refuse("%s was exchanged while it was looked at", dir)
	}
	if err := checkOwner(now, dir); err != nil {
		return err
	}
	f, err := root.OpenFile(MarkFile, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return id.checkUnmarked(root, dir)
	}
	if err != nil {
		return Refuse("%s: its mark cannot be read: %v", dir, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return Refuse("%s: its mark is not a file", dir)
	}
	if err := checkOwner(info, filepath.Join(dir, MarkFile)); err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(f, 1<<10))
	if err != nil {
		return err
	}
	// The run was killed before it had written the mark.
	if len(text) == 0 {
		return id.checkEmptyMark(root, dir)
	}
	if string(text) != id.text() {
		return Refuse("%s carries the mark of another run", dir)
	}
	return nil
}

// checkUnmarked accepts an empty directory: a run may be killed between creating and marking it, and removing
// it destroys nothing.
func (id *Identity) checkUnmarked(root *os.Root, dir string) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return Refuse("%s does not carry the mark of run %s", dir, id.RunID)
	}
	return nil
}

func (id *Identity) checkEmptyMark(root *os.Root, dir string) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	if len(entries) > 1 {
		return Refuse("%s has an empty mark", dir)
	}
	return nil
}

// checkOwner refuses files of another user.
func checkOwner(info fs.FileInfo, path string) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) != os.Geteuid() {
		return Refuse("%s belongs to another user: clean up as the user who ran it", path)
	}
	return nil
}

// RemoveAll removes a directory of the run with its content, the mark last, so that it can be repeated. It
// follows no symbolic link, and refuses as Owns does. A missing directory is no error. The caller ensures
// that nothing is mounted in it.
func (id *Identity) RemoveAll(dir string) error {
	root, err := id.open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := errors.Join(removeContents(root), root.Close()); err != nil {
		return err
	}
	return ignoreMissing(os.Remove(dir))
}

// removeContents removes the content of a directory, the mark only after everything else.
func removeContents(root *os.Root) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		if e.Name() != MarkFile {
			err = errors.Join(err, root.RemoveAll(e.Name()))
		}
	}
	if err != nil {
		return err
	}
	return ignoreMissing(root.Remove(MarkFile))
}

// Unmounted fails with a list of the mounts below a directory, if any, which its removal would reach into.
func Unmounted(dir string) error {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	var found []string
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) > 4 && strings.HasPrefix(f[4], dir+"/") {
			found = append(found, f[4])
		}
	}
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("still mounted: %s; unmount by hand", strings.Join(found, ", "))
}

// RemoveMarked removes a directory that contains only its mark, and keeps any other.
func RemoveMarked(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 1 || len(entries) == 1 && entries[0].Name() != MarkFile {
		return ignoreMissing(err)
	}
	return errors.Join(ignoreMissing(os.Remove(filepath.Join(dir, MarkFile))), ignoreMissing(os.Remove(dir)))
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Environment returns the variable of the run's processes, as NAME=value.
func (id *Identity) Environment() string { return Variable + "=" + id.RunID + "." + id.Nonce }
