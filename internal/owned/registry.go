package owned

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Registration is what this machine keeps of a run that this user started here, beside its bundle. A bundle may come
// from somebody else; a registration does not.
type Registration struct {
	Identity Identity `json:"identity"`
	// SecretFiles are the files with the Secrets that the removal of the run's objects needs.
	SecretFiles []string `json:"secretFiles,omitempty"`
}

// registry is the directory of registrations: only this user can read it.
func registry() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/cnsbench/runs", nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "cnsbench", "runs"), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state", "cnsbench", "runs"), err
}

func registrationFile(runID string) (string, error) {
	if err := CheckRunID(runID); err != nil {
		return "", err
	}
	dir, err := registry()
	return filepath.Join(dir, runID+".json"), err
}

// Register keeps a registration until Unregister.
func Register(r Registration) error {
	path, err := registrationFile(r.Identity.RunID)
	if err != nil {
		return err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// Registered returns the registration of a run; false: this user did not start a run with that identity here, or it
// has ended with nothing left.
func Registered(id Identity) (r Registration, ok bool, err error) {
	if !runIDs.MatchString(id.RunID) {
		return r, false, nil
	}
	path, err := registrationFile(id.RunID)
	if err != nil {
		return r, false, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return r, false, nil
	}
	if err != nil {
		return r, false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = checkOwner(info, path)
	}
	if err == nil {
		err = json.NewDecoder(f).Decode(&r)
	}
	return r, err == nil && r.Identity.RunID == id.RunID && r.Identity.Nonce == id.Nonce, err
}

// Unregister forgets a run of which nothing is left. An identity that only claims the run's ID forgets nothing.
func Unregister(id Identity) error {
	if _, ok, err := Registered(id); err != nil || !ok {
		return err
	}
	path, err := registrationFile(id.RunID)
	if err != nil {
		return err
	}
	return ignoreMissing(os.Remove(path))
}
