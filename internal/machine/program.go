package machine

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Program identifies the file of a program by one of two hashes of its contents.
type Program struct {
	Path string `json:"path"`
	// SHA256 is in hex. It is empty for a program with a build ID.
	SHA256 string `json:"sha256,omitempty"`
	// GoBuildID is what the linker of Go recorded, which ends with a hash of the program. To hash the file itself would
	// take most of the time before the first op: such programs are large.
	GoBuildID string `json:"goBuildID,omitempty"`
}

// maxProgram bounds the bytes of a program that are hashed.
const maxProgram = 1 << 30

// ReadProgram identifies the file at path, which may be a link such as /proc/PID/exe. The error wraps os.ErrNotExist if
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
	p := Program{Path: path, GoBuildID: goBuildID(f)}
	if p.GoBuildID == "" {
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return Program{}, err
		}
		p.SHA256 = hex.EncodeToString(h.Sum(nil))
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		p.Path = real
	}
	return p, nil
}

// noteHead is the head of the ELF note with the build ID: the lengths of its name and of the ID, its type, its name.
const noteHead = 16

// goBuildID returns the build ID in an ELF program of Go; "": there is none. Its format is that of the standard
// library's internal/buildid.
func goBuildID(r io.ReaderAt) string {
	f, err := elf.NewFile(r)
	if err != nil {
		return ""
	}
	section := f.Section(".note.go.buildid")
	if section == nil || section.Size > 1<<10 {
		return ""
	}
	note, err := section.Data()
	if err != nil || len(note) < noteHead || !bytes.Equal(note[noteHead-4:noteHead], []byte("Go\x00\x00")) {
		return ""
	}
	id := note[noteHead:]
	if n := f.ByteOrder.Uint32(note[4:]); n < uint32(len(id)) {
		id = id[:n]
	}
	return string(id)
}
