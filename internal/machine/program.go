package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Program identifies the file of a program.
type Program struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"` // in hex
}

// maxProgram bounds the bytes of a program that are hashed.
const maxProgram = 1 << 30

// ReadProgram hashes the file at path, which may be a link such as /proc/PID/exe. The error wraps os.ErrNotExist if
// there is none.
func ReadProgram(path string) (Program, error) {
	f, err := os.Open(path)
	if err != nil {
		return Program{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Program{}, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxProgram {
		return Program{}, fmt.Errorf("%s is not a regular file of at most %d MiB", path, maxProgram>>20)
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return Program{}, err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return Program{Path: path, SHA256: hex.EncodeToString(h.Sum(nil))}, nil
}
