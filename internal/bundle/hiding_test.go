package bundle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/op"
)

// TestHiding: no line of the log and no message has a secret; raw output stays as it is.
func TestHiding(t *testing.T) {
	t.Parallel()
	w, err := Create(filepath.Join(t.TempDir(), "b"), Run{ID: "a", BarrierAt: op.Never, EndedAt: op.Never})
	if err != nil {
		t.Fatal(err)
	}
	w.Hide("hunter2-of-the-run")
	w.Log(1, "engine", "dial https://admin:opensesame@store:9000: refused")
	w.Log(2, "driver x", "NodeStage secrets:<key:\"k\" value:\"opensesame\" >")
	w.Log(3, "fio-0/fio", "logging in with hunter2-of-the-run")
	w.Log(4, "fio-0/fio", "-----BEGIN PRIVATE KEY-----")
	w.Log(5, "engine", "read 5 GiB")
	w.Log(6, "fio-0/fio", "opensesame")
	w.Log(7, "fio-0/fio", "-----END PRIVATE KEY-----")
	w.Op(op.Op{ID: 1, Action: "a", Outcome: op.Error, Message: "password=opensesame is wrong"})
	w.Ended(op.InstanceEnd{Instance: "fio-0", Containers: []op.ContainerEnd{{Name: "fio", ExitCode: 1,
		Message: "token: opensesame"}}})
	if err := w.Raw("fio-0", "fio", "out.txt", []byte("token: raw-stays")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(func(r *Run) { r.State = Complete }); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"log.jsonl", "instances.jsonl", "events/ops.parquet"} {
		text, err := os.ReadFile(filepath.Join(w.Dir(), file))
		if err != nil {
			t.Fatal(err)
		}
		if s := string(text); strings.Contains(s, "opensesame") || strings.Contains(s, "hunter2") {
			t.Errorf("%s has a secret:\n%s", file, s)
		}
		if file == "log.jsonl" && (!strings.Contains(string(text), "read 5 GiB") ||
			!strings.Contains(string(text), "store:9000: refused")) {
			t.Errorf("log.jsonl lost a line without a secret:\n%s", text)
		}
	}
	b, err := Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for o, err := range b.Ops() {
		if err != nil || o.Message != "password=*** is wrong" {
			t.Errorf("message %q, %v", o.Message, err)
		}
	}
	raw, err := os.ReadFile(filepath.Join(w.Dir(), "raw/fio-0/fio/out.txt"))
	if err != nil || string(raw) != "token: raw-stays" {
		t.Errorf("raw output %q, %v", raw, err)
	}
}
