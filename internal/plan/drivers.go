package plan

// driverSuffix is the suffix of the names of the built-in drivers.
const driverSuffix = ".csi.cnsbench.dev"

// backends are the names of the built-in drivers without driverSuffix.
var backends = []string{"null", "hostdir", "loopfile", "btrfs"}

// Features that some built-in drivers lack, as worded in messages.
const (
	canBlock  = "has no raw block volumes"
	canGroup  = "has no group snapshots"
	canModify = "cannot modify volumes"
	canLimit  = "has no block device to which an I/O limit could apply"
)

// lacks lists, by driver, the features that a built-in driver would reject during the
// run. It must match internal/csi/csidriver: the interfaces that the backends
// implement and the volumes that their shape methods reject.
var lacks = map[string]map[string]bool{
	"hostdir" + driverSuffix: {canBlock: true, canGroup: true, canModify: true},
	"btrfs" + driverSuffix:   {canBlock: true, canGroup: true, canModify: true, canLimit: true},
}
