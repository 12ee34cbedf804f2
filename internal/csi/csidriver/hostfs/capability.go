package hostfs

import "golang.org/x/sys/unix"

// HasCapability reports whether this process has an effective Linux capability, such as
// unix.CAP_SYS_RESOURCE.
func HasCapability(capability int) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return data[capability/32].Effective&(1<<(capability%32)) != 0
}
