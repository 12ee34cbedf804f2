package scaffold

import (
	"bytes"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/library"
)

// modelFile is the key of a profile's entry that has its model.
const modelFile = "model.json"

// Profile is what the entry of a profile has of its trace.
type Profile struct {
	Description string // one line
	Model       []byte // JSON
	FileSize    int64  // bytes
	Seconds     int64
	Jobs        int
	Direct      bool
}

// Files returns the files of the entry's folder by name.
func (p *Profile) Files(name string) (map[string][]byte, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	const mib = 1 << 20
	file := (p.FileSize + mib - 1) / mib
	direct := "0"
	if p.Direct {
		direct = "1"
	}
	values := strings.NewReplacer(placeholder, name,
		"PROFILE_DESCRIPTION", p.Description,
		"PROFILE_FILE", fmt.Sprintf("%dMi", file),
		"PROFILE_VOLUME", fmt.Sprintf("%dMi", file+file/8+64), // a file system needs some of it
		"PROFILE_SECONDS", strconv.FormatInt(max(1, p.Seconds), 10),
		"PROFILE_JOBS", strconv.Itoa(max(1, p.Jobs)),
		"PROFILE_DIRECT", direct)
	list, err := fs.ReadDir(library.Profile, "profile")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{modelFile: p.Model}
	for _, f := range list {
		text, err := fs.ReadFile(library.Profile, "profile/"+f.Name())
		if err != nil {
			return nil, err
		}
		files[f.Name()] = []byte(values.Replace(string(bytes.TrimLeft(text, "\n"))))
	}
	return files, nil
}
