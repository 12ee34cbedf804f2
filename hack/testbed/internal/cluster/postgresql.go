package cluster

import (
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/cnsbench/cnsbench/hack/testbed/internal/image"
)

// The programs of Debian's PostgreSQL 15. The server finds its other files by its own place.
const (
	postgresBin = "/usr/lib/postgresql/15/bin"
	postgres    = postgresBin + "/postgres"
)

// postgreSQLImage has what the library's entry pgbench calls.
func postgreSQLImage() (image.Image, error) {
	files, err := image.Programs("dash", "cat", "grep", "id", "mv", "rm", "sleep", "touch")
	if err != nil {
		return image.Image{}, err
	}
	binaries := []string{"/usr/lib/postgresql/15/lib/plpgsql.so", "/usr/lib/postgresql/15/lib/dict_snowball.so"}
	for _, name := range []string{"postgres", "initdb", "pgbench", "pg_isready", "psql", "createdb", "dropdb"} {
		binaries = append(binaries, filepath.Join(postgresBin, name))
	}
	for _, at := range append(binaries, "/usr/share/zoneinfo/Etc/UTC") {
		files = append(files, image.File{Path: at, From: at})
	}
	libraries, err := image.Libraries(binaries...)
	if err != nil {
		return image.Image{}, err
	}
	share, err := image.Tree("/usr/share/postgresql/15")
	if err != nil {
		return image.Image{}, err
	}
	files = append(append(append(files, libraries...), share...), image.Users()...)
	files = append(files, image.File{Path: "/bin", Link: "usr/bin"}, image.File{Path: "/usr/bin/sh", Link: "dash"})
	return image.Image{Arch: runtime.GOARCH, Files: once(merged(files)), Config: v1.Config{
		Cmd: []string{"/bin/sh"}, Env: []string{"PATH=" + postgresBin + ":/usr/bin", "HOME=/tmp"}}}, nil
}

// once keeps the first of the files with the same path.
func once(files []image.File) []image.File {
	var kept []image.File
	known := map[string]bool{}
	for _, f := range files {
		if !known[f.Path] {
			known[f.Path] = true
			kept = append(kept, f)
		}
	}
	return kept
}
