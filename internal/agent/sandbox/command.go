package sandbox

import (
	"os"
	"os/exec"
	"syscall"
)

// Command returns the agent's command in new mount and PID namespaces and, unless this process is root, in a
// user namespace that maps its user to root. The agent reads its Spec from spec. The kernel kills it, and its
// PID namespace, when the thread that starts it ends: start it from a thread that lives as long. Its own
// messages go to stderr. With noNetwork it has an empty network namespace; the runner's unix socket stays
// reachable through the file system.
func Command(agent string, spec, stderr *os.File, noNetwork bool) *exec.Cmd {
	cmd := exec.Command(agent, "jail") //nolint:noctx // the session ends it through the connection
	cmd.Env = []string{}               // the workload must not see the runner's environment
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{spec}
	cmd.Stdout, cmd.Stderr = stderr, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL,
	}
	if noNetwork {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWNET
	}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return cmd
}
