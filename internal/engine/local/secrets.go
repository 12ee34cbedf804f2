package local

import (
	"fmt"
	"maps"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/sidecar"
)

// secretsOf resolves the secrets that the parameters of a class name for an object. Each must be here.
func (e *Engine) secretsOf(kinds []sidecar.Secret, parameters map[string]string, of sidecar.Object) (secrets, error) {
	all := secrets{}
	for _, kind := range kinds {
		r, err := kind.Of(parameters, of)
		if err != nil {
			return nil, engine.Errorf("InvalidArgument", "secrets of %s: %v", of.Name, err)
		}
		if r == (sidecar.Reference{}) {
			continue
		}
		if _, err := e.secret(r); err != nil {
			return nil, err
		}
		all[kind] = r
	}
	return all, nil
}

// secret returns the values of a Secret.
func (e *Engine) secret(r sidecar.Reference) (map[string]string, error) {
	for _, known := range []engine.Secrets{e.session.Secrets, e.Secrets} {
		if values, ok := known.Of(r); ok {
			return maps.Clone(values), nil
		}
	}
	return nil, engine.Errorf("NotFound", "Secret %s is not here: give the file that has it", r)
}

// secretFor returns the values of an object's secret of a kind; nil: it has none.
func (e *Engine) secretFor(of secrets, kind sidecar.Secret) map[string]string {
	r, ok := of[kind]
	if !ok {
		return nil
	}
	values, err := e.secret(r)
	if err != nil { // it was here when the references were resolved
		e.session.Sink.Log("run", err.Error())
	}
	return values
}

// record is the references as a ledger has them.
func (s secrets) record() map[string]string {
	m := map[string]string{}
	for kind, r := range s {
		m[string(kind)] = r.String()
	}
	return m
}

// recordedSecrets is the inverse of record; each Secret must be here.
func (e *Engine) recordedSecrets(m map[string]string) (secrets, error) {
	all := secrets{}
	for kind, text := range m {
		r := sidecar.ParseReference(text)
		if _, err := e.secret(r); err != nil {
			return nil, fmt.Errorf("%w: cleanup BUNDLE --secrets FILE", err)
		}
		all[sidecar.Secret(kind)] = r
	}
	return all, nil
}
