package cli

import (
	"encoding/base64"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/redact"
)

// secretValues are the secrets that a run knows, so that the logs which it keeps have none of them: those of the
// runner's environment, of the Secrets beside the Benchmark, and of the Secrets that the plan creates, as rendered for
// the first instance.
func secretValues(p *plan.Plan, runID string) (values []string) {
	for _, v := range os.Environ() {
		if name, value, _ := strings.Cut(v, "="); redact.Names(name) {
			values = append(values, value)
		}
	}
	for _, secret := range p.Secrets {
		for _, v := range secret {
			values = append(values, v, base64.StdEncoding.EncodeToString([]byte(v)))
		}
	}
	for i := range p.Actions {
		a := &p.Actions[i]
		if a.Workload != nil {
			if w, err := a.Workload.Render(runID, 0); err == nil { // else no instance is created
				for j := range w.Secrets {
					values = append(values, valuesOf(&w.Secrets[j])...)
				}
			}
		}
		if a.Manifest == nil {
			continue
		}
		if o, err := a.Manifest.Render(runID, 0); err == nil && o.GetKind() == "Secret" {
			values = append(values, textsIn(o.Object["stringData"])...)
			for _, encoded := range textsIn(o.Object["data"]) {
				values = append(values, encoded)
				if plain, err := base64.StdEncoding.DecodeString(encoded); err == nil {
					values = append(values, string(plain))
				}
			}
		}
	}
	return values
}

func valuesOf(s *corev1.Secret) (values []string) {
	for _, v := range s.Data {
		values = append(values, string(v), base64.StdEncoding.EncodeToString(v))
	}
	for _, v := range s.StringData {
		values = append(values, v)
	}
	return values
}

// textsIn returns the texts of a decoded object.
func textsIn(of any) (values []string) {
	fields, _ := of.(map[string]any)
	for _, v := range fields {
		if text, ok := v.(string); ok {
			values = append(values, text)
		}
	}
	return values
}
