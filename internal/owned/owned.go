// Package owned identifies what belongs to a run, so that a clean-up removes nothing else: objects on a cluster carry a
// digest of the run's identity; directories on a machine are those that its registry names. docs/design/cleanup.md
// describes how each kind of object is recognised.
package owned

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// Identity names a run and its directories. On a cluster it is in run.json, else in the registry of the machine.
type Identity struct {
	RunID string `json:"runID"`
	// Nonce is drawn for the run; objects on a cluster carry a digest of it.
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

const nonceBytes = 16

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
	sum := sha256.Sum256([]byte(id.RunID + " " + id.Nonce + "\n"))
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
func ScratchName(runID string) string { return "cnsbench-" + runID }

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

// Owns refuses what is no directory of this user. A missing one is no error.
func Owns(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return Refuse("%s is not a directory", dir)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return Refuse("%s belongs to another user", dir)
	}
	return nil
}

// RemoveAll removes a directory of this user with its content, unless something is mounted below it. It follows no
// symbolic link. A missing directory is no error, nor is an empty name.
func RemoveAll(dir string) error {
	if dir == "" {
		return nil
	}
	if !filepath.IsAbs(dir) || filepath.Clean(dir) == "/" {
		return Refuse("%q is not the path of a directory of a run", dir)
	}
	if err := errors.Join(Owns(dir), Unmounted(dir)); err != nil {
		return err
	}
	return os.RemoveAll(dir)
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

// Environment returns the variable of a run's processes, as NAME=value; agents do not pass it on.
func Environment(runID string) string { return "CNSBENCH_AGENT_RUN=" + runID }
