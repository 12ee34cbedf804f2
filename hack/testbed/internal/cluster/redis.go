package cluster

import (
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/cnsbench/cnsbench/hack/testbed/internal/image"
)

// redisServer is the server of Debian's Redis.
const redisServer = "/usr/bin/redis-server"

// redisImage has what the library's entry redis-benchmark calls.
func redisImage() (image.Image, error) {
	files, err := image.Programs("redis-server", "redis-cli", "redis-benchmark", "dash", "cat", "date", "grep", "mkdir",
		"sleep", "sync", "test", "touch", "tr")
	files = append(append(files, image.Users()...), image.File{Path: "/bin", Link: "usr/bin"},
		image.File{Path: "/usr/bin/sh", Link: "dash"})
	return image.Image{Arch: runtime.GOARCH, Files: once(merged(files)), Config: v1.Config{
		Cmd: []string{"/bin/sh"}, Env: []string{"PATH=/usr/bin", "HOME=/tmp"}}}, err
}
