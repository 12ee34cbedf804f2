package plan

import (
	"strings"
	"testing"
)

// TestEndlessRestarts checks that a run that restarts may keep from ending has a warning, for every action that restarts
// workloads and every kind of rate, and that others have none.
func TestEndlessRestarts(t *testing.T) {
	t.Parallel()
	const kill, constant = `killSpec: {actionName: w}`, `constantRateSpec: {interval: 10s}`
	const each = "each 10s on average"
	for name, tt := range map[string]struct{ spec, action, rate, want string }{
		"kill":                 {"", kill, constant, each},
		"delete the pod":       {"", `killSpec: {actionName: w, deletePodSpec: {gracePeriod: 1s}}`, constant, each},
		"suspend":              {"", `killSpec: {actionName: w, signal: SIGSTOP, stopFor: 1s}`, constant, ""},
		"reattach":             {"", `reattachSpec: {actionName: w}`, constant, each},
		"rollout":              {"", `rolloutSpec: {actionName: w}`, constant, each},
		"drain":                {"", `drainSpec: {nodeLabels: {a: b}}`, constant, each},
		"snapshot":             {"", `snapshotSpec: {actionName: w}`, constant, ""},
		"poisson":              {"", kill, `poissonRateSpec: {perSecond: 0.1}`, each},
		"burst":                {"", kill, `burstRateSpec: {size: 2, interval: 20s}`, each},
		"closed loop":          {"", kill, `concurrencySpec: {parallelism: 1}`, "as often as its operations end"},
		"condition":            {"", kill, `triggerRateSpec: {when: 'iops(w.read) > 10', cooldown: 20s}`, "up to each 20s"},
		"ramp, which ends":     {"", kill, `rampRateSpec: {stages: [{duration: 20s, perSecond: 1}]}`, ""},
		"rare":                 {"", kill, `constantRateSpec: {interval: 45s}`, ""},
		"after the workload":   {"", kill, constant + `, startAfter: 45s`, ""},
		"with a limit":         {"", kill, constant + `, limit: 3`, ""},
		"with a duration":      {"", kill, constant + `, duration: 1m`, ""},
		"with a runtime":       {"  runtime: 2m\n", kill, constant, ""},
		"in an episode":        {"", `snapshotSpec: {actionName: w}, then: [again]`, constant, each},
		"of unknown length":    {"", `killSpec: {actionName: unknown}`, constant, "needs all of its time again"},
		"of one that ends not": {"", `killSpec: {actionName: server}`, constant, ""},
	} {
		text := "spec:\n" + tt.spec + `  actions:
    - {name: w, createObjSpec: {workload: fio, vars: {storageClass: hostdir, runtime: 45}}}
    - {name: unknown, createObjSpec: {workload: dd, vars: {storageClass: hostdir}}}
    - {name: server, createObjSpec: {workload: idle, vars: {storageClass: hostdir}}}
    - {name: disturb, rateName: r, ` + tt.action + "}\n"
		if strings.Contains(tt.action, "again") {
			text += "    - {name: again, killSpec: {actionName: w}}\n"
		}
		p := good(t, Input{Capabilities: everything()}, text+"  rates: [{name: r, "+tt.rate+"}]\n")
		var got []string
		for _, w := range p.Warnings {
			if strings.Contains(w.String(), "may never end") {
				got = append(got, w.String())
			}
		}
		if tt.want == "" {
			if len(got) > 0 || len(p.Restarts) > 0 {
				t.Errorf("%s: %v, %+v", name, got, p.Restarts)
			}
			continue
		}
		if len(got) != 1 || !strings.Contains(got[0], tt.want) || len(p.Restarts) != 1 {
			t.Errorf("%s: %q in %q, %+v", name, tt.want, got, p.Restarts)
		}
	}
}
