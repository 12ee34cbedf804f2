package cli

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// plugin says whether kubectl called us: as "kubectl cnsbench" it runs a program
// kubectl-cnsbench, which is this one by another name.
func plugin() bool { return strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl-") }

// calledAs lets help and usage name the command as it was called.
func calledAs(root *cobra.Command) {
	if plugin() {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl cnsbench"}
	}
}

// defaultEngine is the cluster for those who come by way of kubectl.
func defaultEngine() string {
	if plugin() {
		return engineKubernetes
	}
	return engineLocal
}
