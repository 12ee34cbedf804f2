package sandbox

import (
	"os"
	"os/exec"
	"syscall"
)

// Command is the agent in new mount and PID namespaces, and, unless this
// process is root, in a user namespace in which it is root: the one identity
// that is mapped there is our own. It reads its Spec from spec. The agent is
// killed by the kernel when the thread that starts it ends, and everything in
// its PID namespace with it: start it from a thread that lives as long as it
// should. Its own messages go to stderr. With alone it has a network of its own
// in which there is nothing; the runner's unix socket is reached all the same,
// since that is a matter of the file system.
func Command(agent string, spec, stderr *os.File, alone bool) *exec.Cmd {
	cmd := exec.Command(agent, "jail") //nolint:noctx // its life is its session's, which ends it by the wire first
	cmd.Env = []string{}               // nothing of the runner's reaches the workload
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{spec}
	cmd.Stdout, cmd.Stderr = stderr, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL,
	}
	if alone {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWNET
	}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return cmd
}
