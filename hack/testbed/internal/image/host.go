package image

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Programs are files for programs of this machine and the libraries that they load, at /usr/bin and the libraries' own
// paths.
func Programs(names ...string) ([]File, error) {
	var files []File
	var programs []string
	for _, name := range names {
		at, err := exec.LookPath(name)
		if err != nil {
			return nil, fmt.Errorf("%s is to be put into an image: %w", name, err)
		}
		if at, err = filepath.EvalSymlinks(at); err != nil {
			return nil, err
		}
		files = append(files, File{Path: "/usr/bin/" + name, From: at})
		programs = append(programs, at)
	}
	libraries, err := Libraries(programs...)
	return append(files, libraries...), err
}

// Libraries are files for the libraries that programs or libraries of this machine load, each once, at their own paths.
func Libraries(of ...string) ([]File, error) {
	var files []File
	known := map[string]bool{}
	for _, at := range of {
		needs, err := loads(at)
		if err != nil {
			return nil, err
		}
		for _, lib := range needs {
			if !known[lib] {
				known[lib] = true
				files = append(files, File{Path: lib, From: lib})
			}
		}
	}
	return files, nil
}

// Tree are files for the regular files below a folder of this machine, at their own paths.
func Tree(folder string) ([]File, error) {
	var files []File
	err := filepath.WalkDir(folder, func(at string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, File{Path: at, From: at})
		}
		return err
	})
	return files, err
}

// loaded matches a library in what ldd prints: "name => /path (0x…)", or "/path (0x…)" of the loader.
var loaded = regexp.MustCompile(`(?m)(?:=> |^\s+)(/\S+) \(0x`)

// loads lists the libraries of a program, the loader among them; none for one that is linked statically.
func loads(program string) ([]string, error) {
	out, err := exec.Command("ldd", program).CombinedOutput()
	if err != nil && !strings.Contains(string(out), "not a dynamic executable") &&
		!strings.Contains(string(out), "statically linked") {
		return nil, fmt.Errorf("ldd %s: %w: %s", program, err, out)
	}
	return parseLdd(string(out)), nil
}

func parseLdd(out string) []string {
	var paths []string
	for _, m := range loaded.FindAllStringSubmatch(out, -1) {
		paths = append(paths, m[1])
	}
	return paths
}

// Certificates are the machine's authorities, when it has any.
func Certificates() []File {
	const at = "/etc/ssl/certs/ca-certificates.crt"
	if _, err := os.Stat(at); err != nil {
		return nil
	}
	return []File{{Path: at, From: at, Mode: 0o644}}
}

// Users are a passwd and a group file with root and a user without rights.
func Users() []File {
	return []File{
		{Path: "/etc/passwd", Text: "root:x:0:0:root:/root:/bin/sh\nnonroot:x:65532:65532:nonroot:/tmp:/bin/sh\n"},
		{Path: "/etc/group", Text: "root:x:0:\nnonroot:x:65532:\n"},
		{Path: "/tmp", Folder: true, Mode: 0o1777},
	}
}
