package capture

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/trace"
)

// Audit is the result of reading an audit log.
type Audit struct {
	Records []trace.Record
	Events  int // in the log
	// Bare counts writes that were logged without their objects (level Metadata): only creations and deletions by
	// name are known of them.
	Bare int
}

// event has the used fields of an audit.k8s.io/v1 Event.
type event struct {
	Stage      string `json:"stage"`
	RequestURI string `json:"requestURI"`
	Verb       string `json:"verb"`
	ObjectRef  *struct {
		Resource    string `json:"resource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus *struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestObject  json.RawMessage  `json:"requestObject"`
	ResponseObject json.RawMessage  `json:"responseObject"`
	Received       metav1.MicroTime `json:"requestReceivedTimestamp"`
	Stamp          metav1.MicroTime `json:"stageTimestamp"`
}

// resources are the captured resources, by their name in URLs.
var resources = map[string]func() metav1.Object{
	"persistentvolumeclaims": func() metav1.Object { return new(corev1.PersistentVolumeClaim) },
	"volumesnapshots":        func() metav1.Object { return new(api.VolumeSnapshot) },
	"volumeattachments":      func() metav1.Object { return new(storagev1.VolumeAttachment) },
	"pods":                   func() metav1.Object { return new(corev1.Pod) },
}

// maxEvent bounds a line of the log: an object has at most 1.5 MiB, and a line may have two objects or a list.
const maxEvent = 64 << 20

// FromAudit reads an API server's audit log, as JSON lines of audit.k8s.io/v1. The trace begins with the log. An
// operation begins when its request was received, to the microsecond, and ends when the request that completed it
// was answered. Requests without a change (refused, dry run) count only as failed creations. Errors name the line.
func FromAudit(r io.Reader) (Audit, error) {
	scan := bufio.NewScanner(r)
	scan.Buffer(make([]byte, 0, 1<<20), maxEvent)
	var a Audit
	var t *Tracker
	var start, end time.Time
	for n := 1; scan.Scan(); n++ {
		line := bytes.TrimSpace(scan.Bytes())
		if len(line) == 0 {
			continue
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return a, fmt.Errorf("audit log: line %d: %w", n, err)
		}
		if e.Received.IsZero() || e.Stamp.Before(&e.Received) {
			return a, fmt.Errorf("audit log: line %d: it has no times of an audit.k8s.io/v1 Event", n)
		}
		a.Events++
		if t == nil {
			start = e.Received.Time
			t = New(start)
		}
		if e.Stamp.After(end) {
			end = e.Stamp.Time
		}
		if err := a.event(t, &e, start); err != nil {
			return a, fmt.Errorf("audit log: line %d: %w", n, err)
		}
	}
	if err := scan.Err(); err != nil {
		return a, fmt.Errorf("audit log: %w", err)
	}
	if t != nil {
		a.Records = t.Trace(int64(end.Sub(start)))
	}
	for i := range a.Records {
		if err := a.Records[i].Check(); err != nil {
			return a, fmt.Errorf("audit log: %w", err)
		}
	}
	return a, nil
}

// event handles one event.
func (a *Audit) event(t *Tracker, e *event, start time.Time) error {
	if e.Stage != "ResponseComplete" || e.ObjectRef == nil || e.ResponseStatus == nil ||
		strings.Contains(e.RequestURI, "dryRun=") {
		return nil
	}
	empty, own := resources[e.ObjectRef.Resource]
	switch e.ObjectRef.Subresource {
	case "", "status", "resize":
	default:
		return nil
	}
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
	default:
		return nil
	}
	if !own {
		return nil
	}
	asked, at := int64(e.Received.Sub(start)), int64(e.Stamp.Sub(start))
	if e.ResponseStatus.Code/100 != 2 {
		return a.refused(t, e, empty(), asked, at)
	}
	objects, logged, err := e.objects(empty)
	if err != nil {
		return err
	}
	if !logged {
		a.bare(t, e, empty(), asked, at)
	}
	for _, o := range objects {
		if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && gracePassed(o) || e.Verb == "delete" &&
			o.GetDeletionTimestamp() == nil {
			t.Gone(o, asked, at)
			continue
		}
		t.See(o, asked, at)
	}
	return nil
}

// gracePassed says whether nothing holds a deleted object any more.
func gracePassed(o metav1.Object) bool {
	g := o.GetDeletionGracePeriodSeconds()
	return g == nil || *g == 0
}

// objects returns the objects of the answer; logged is false if the log has no answer.
func (e *event) objects(empty func() metav1.Object) (list []metav1.Object, logged bool, err error) {
	var head struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if len(e.ResponseObject) == 0 {
		return nil, false, nil
	}
	if err := json.Unmarshal(e.ResponseObject, &head); err != nil {
		return nil, true, fmt.Errorf("responseObject: %w", err)
	}
	if head.Kind == "Status" {
		return nil, false, nil
	}
	raw := head.Items
	if !strings.HasSuffix(head.Kind, "List") {
		raw = []json.RawMessage{e.ResponseObject}
	}
	for _, text := range raw {
		o := empty()
		if err := json.Unmarshal(text, o); err != nil {
			return nil, true, fmt.Errorf("%s %s/%s: %w", e.Verb, e.ObjectRef.Namespace, e.ObjectRef.Name, err)
		}
		list = append(list, o)
	}
	return list, true, nil
}

// refused handles a failed request; only creations become operations.
func (a *Audit) refused(t *Tracker, e *event, o metav1.Object, asked, at int64) error {
	if e.Verb != "create" || len(e.RequestObject) == 0 {
		return nil
	}
	if err := json.Unmarshal(e.RequestObject, o); err != nil {
		return nil //nolint:nilerr // it may be the reason of the refusal
	}
	o.SetNamespace(e.ObjectRef.Namespace)
	t.Failed(o, asked, at)
	return nil
}

// bare handles a write without a logged object.
func (a *Audit) bare(t *Tracker, e *event, o metav1.Object, asked, at int64) {
	a.Bare++
	if e.ObjectRef.Name == "" || e.ObjectRef.Resource == "pods" || e.ObjectRef.Subresource != "" {
		return
	}
	o.SetName(e.ObjectRef.Name)
	o.SetNamespace(e.ObjectRef.Namespace)
	if uid, known := t.uid(o); known {
		o.SetUID(uid)
	} else {
		o.SetUID(types.UID(e.ObjectRef.Resource + "/" + e.ObjectRef.Namespace + "/" + e.ObjectRef.Name))
	}
	switch e.Verb {
	case "create":
		t.See(o, asked, at)
	case "delete":
		t.Gone(o, asked, at)
	}
}
