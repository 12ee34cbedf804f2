package owned

import (
	"os"
	"testing"
)

// TestRegistration keeps what is not in a bundle for the run that has its nonce, and for no bundle that claims its ID.
func TestRegistration(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Setenv("XDG_STATE_HOME", t.TempDir())
	}
	id := New("registration-test")
	if err := Register(Registration{Identity: id, SecretFiles: []string{"/secret.yaml"}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = Unregister(id) })
	r, ok, err := Registered(id)
	if err != nil || !ok || len(r.SecretFiles) != 1 {
		t.Errorf("registered: %+v, %v, %v", r, ok, err)
	}
	for name, other := range map[string]Identity{"another nonce": New(id.RunID), "another run": New("r"),
		"a path": New("../../etc/passwd"), "none": {}} {
		if r, ok, err := Registered(other); ok || err != nil {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		if err := Unregister(other); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, ok, _ := Registered(id); !ok {
		t.Error("another identity has made it forgotten")
	}
	if err := Unregister(id); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := Registered(id); ok || err != nil {
		t.Errorf("it is still registered: %v", err)
	}
}
