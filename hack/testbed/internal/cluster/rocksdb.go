package cluster

import (
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/cnsbench/cnsbench/hack/testbed/internal/image"
)

// dbBench is the benchmark of Debian's RocksDB.
const dbBench = "/usr/bin/db_bench"

// rocksDBImage has what the library's entry db-bench calls.
func rocksDBImage() (image.Image, error) {
	return programsImage("db_bench", "date", "df", "sleep", "touch")
}

// programsImage has programs of this machine, their libraries and sh.
func programsImage(names ...string) (image.Image, error) {
	files, err := image.Programs(append(names, "dash")...)
	files = append(append(files, image.Users()...), image.File{Path: "/bin", Link: "usr/bin"},
		image.File{Path: "/usr/bin/sh", Link: "dash"})
	return image.Image{Arch: runtime.GOARCH, Files: once(merged(files)), Config: v1.Config{
		Cmd: []string{"/bin/sh"}, Env: []string{"PATH=/usr/bin", "HOME=/tmp"}}}, err
}
