package cli

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// plugin says whether kubectl started this program: "kubectl cnsbench" starts kubectl-cnsbench.
func plugin() bool { return strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl-") }

// calledAs makes help and usage name the command as the user called it.
func calledAs(root *cobra.Command) {
	if plugin() {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl cnsbench"}
	}
}

// defaultEngine is kubernetes for a kubectl plugin.
func defaultEngine() string {
	if plugin() {
		return engineKubernetes
	}
	return engineLocal
}
