package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/cnsbench/cnsbench/hack/testbed/internal/image"
)

// application is the image of an application of the library, made of what is installed on this machine.
type application struct {
	image    string   // as the library's entry requests it beside ProductImage; library/images has its recipe elsewhere
	program  string   // where the application is not installed, it is missing and there is no image
	programs []string // in $PATH, beside shell
	binaries []string // at their own paths
	files    []string // at their own paths
	trees    []string // folders, at their own paths
}

// shell are the programs that the scripts of the library call.
var shell = []string{"cat", "dash", "grep", "id", "mv", "rm", "sleep", "touch"}

// applications are the images by the names of their tars.
var applications = map[string]application{
	"postgresql": {
		image:   "localhost/workload-postgresql:15",
		program: "/usr/lib/postgresql/15/bin/postgres",
		// The server finds its other files by its own place.
		binaries: in("/usr/lib/postgresql/15", "bin/postgres", "bin/initdb", "bin/pgbench", "bin/pg_isready", "bin/psql",
			"bin/createdb", "bin/dropdb", "lib/plpgsql.so", "lib/dict_snowball.so"),
		files: []string{"/usr/share/zoneinfo/Etc/UTC"},
		trees: []string{"/usr/share/postgresql/15"},
	},
	"ycsb": {
		image:    "localhost/workload-ycsb:1.0.1",
		program:  "/usr/lib/postgresql/15/bin/postgres",
		programs: []string{"go-ycsb", "ferretdb", "mkdir", "sync"},
		binaries: in("/usr/lib/postgresql/15", "bin/postgres", "bin/initdb", "bin/pg_isready", "bin/psql", "bin/createdb",
			"bin/dropdb", "lib/plpgsql.so", "lib/dict_snowball.so"),
		files: []string{"/usr/share/zoneinfo/Etc/UTC"},
		trees: []string{"/usr/share/postgresql/15"},
	},
	"redis": {
		image:    "localhost/workload-redis:7.0.15",
		program:  "/usr/bin/redis-server",
		programs: []string{"redis-server", "redis-cli", "redis-benchmark", "date", "mkdir", "sync", "test", "tr"},
	},
	"etcd": {
		image:    "localhost/workload-etcd:3.4.23",
		program:  "/usr/bin/etcd",
		programs: []string{"etcd", "etcd-benchmark", "curl", "date", "sync"},
	},
	"rocksdb": {
		image:    "localhost/workload-rocksdb:7.8.3",
		program:  "/usr/bin/db_bench",
		programs: []string{"db_bench", "date", "df"},
	},
	"mariadb": {
		image:   "localhost/workload-mariadb:10.11",
		program: "/usr/sbin/mariadbd",
		programs: []string{"mariadb", "mariadb-install-db", "my_print_defaults", "sysbench", "chmod", "chown", "date", "df",
			"dirname", "ls", "mkdir", "sed", "sync", "uname"},
		binaries: []string{"/usr/sbin/mariadbd"}, // mariadb-install-db wants it there
		trees:    []string{"/usr/share/mysql", "/usr/share/sysbench"},
	},
	"megahit": {
		image:   "localhost/workload-megahit:1.2.9",
		program: "/usr/bin/megahit",
		programs: []string{"megahit", "megahit_core", "megahit_core_no_hw_accel", "megahit_core_popcnt", "awk", "df",
			"sync"},
		binaries: []string{"/usr/bin/python3"}, // which megahit names
		trees:    []string{"/usr/lib/python3.11"},
	},
	"nginx": {
		image:    "localhost/workload-nginx:1.22.1",
		program:  "/usr/sbin/nginx",
		programs: []string{"nginx", "wrk", "curl", "cksum", "date", "sync"},
	},
	"sysbench": {
		image:    "localhost/workload-sysbench:1.0.20",
		program:  "/usr/bin/sysbench",
		programs: []string{"sysbench", "date", "df", "mkdir", "sync"},
	},
}

// in are the paths of names in a folder.
func in(folder string, names ...string) []string {
	for i, name := range names {
		names[i] = filepath.Join(folder, name)
	}
	return names
}

// installed tells whether the application and its programs are on this machine.
func (a *application) installed() bool {
	_, err := os.Stat(a.program)
	return err == nil && !slices.ContainsFunc(a.programs, func(name string) bool {
		_, err := exec.LookPath(name)
		return err != nil
	})
}

func (a *application) make() (image.Image, error) {
	files, err := image.Programs(slices.Concat(shell, a.programs)...)
	if err != nil {
		return image.Image{}, err
	}
	for _, at := range slices.Concat(a.binaries, a.files) {
		files = append(files, image.File{Path: at, From: at})
	}
	libraries, err := image.Libraries(a.binaries...)
	if err != nil {
		return image.Image{}, err
	}
	files = append(files, libraries...)
	for _, folder := range a.trees {
		tree, err := image.Tree(folder)
		if err != nil {
			return image.Image{}, err
		}
		files = append(files, tree...)
	}
	files = append(append(files, image.Users()...), image.File{Path: "/bin", Link: "usr/bin"},
		image.File{Path: "/usr/bin/sh", Link: "dash"})
	return image.Image{Arch: runtime.GOARCH, Files: once(merged(files)), Config: v1.Config{
		Cmd: []string{"/bin/sh"}, Env: []string{"PATH=" + a.path(), "HOME=/tmp"}}}, nil
}

// path has the folders of the binaries, and /usr/bin.
func (a *application) path() string {
	var folders []string
	for _, at := range a.binaries {
		if dir := filepath.Dir(at); filepath.Base(dir) == "bin" && dir != "/usr/bin" && !slices.Contains(folders, dir) {
			folders = append(folders, dir)
		}
	}
	return strings.Join(append(folders, "/usr/bin"), ":")
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
