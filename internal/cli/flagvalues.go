package cli

import (
	"maps"
	"slices"

	"github.com/spf13/pflag"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/podspec"
)

// valuesKey is the annotation of a flag with the values that it accepts.
const valuesKey = "cnsbench.values"

// setValues records the values that a flag accepts, for completion.
func setValues(f *pflag.Flag, values ...string) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[valuesKey] = values
}

// flagValues are the values of flags that have the same ones in all commands.
func flagValues() map[string][]string {
	return map[string][]string{
		"engine": slices.Sorted(maps.Keys(engines())), "backend": csidriver.Backends(), "runner": {runnerPod, runnerLocal},
		"agent": {string(podspec.DeliverAuto), string(podspec.DeliverInit), string(podspec.DeliverImage), string(podspec.DeliverBaked)},
		"level": {"occasion", "repetition"}, "table": {"ops", "series", "figures", "stalls"}, "format": exportFormats,
		"auth": {authKubernetes, authToken, authNone},
	}
}
