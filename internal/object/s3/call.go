package s3

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/client"
)

// call is an operation of S3 that needs no more than one request of its own.
type call struct {
	method, query string
	container     bool // of a container: the object is the prefix of keys
	version       bool // of the object's oldest version, which a listing before names
	// body of the request; nil: none.
	body func(r *client.Request, now time.Time) []byte
	// counted is the element of the answer that counts as a key.
	counted []string
}

// calls by the type of their operation in a workload. Another one is an entry here and one in model.Operations.
var calls = map[string]call{
	"listversions": {method: "GET", query: versionsQuery, container: true,
		counted: []string{"<Version>", "<DeleteMarker>"}},
	"readversion":   {method: "GET", version: true},
	"deleteversion": {method: "DELETE", version: true},
	"deleteobjects": {method: "POST", query: "delete=", container: true, body: batch, counted: []string{"<Deleted>"}},
	"puttags":       {method: "PUT", query: "tagging=", body: tags},
	"gettags":       {method: "GET", query: "tagging=", counted: []string{"<Key>"}},
	"deletetags":    {method: "DELETE", query: "tagging="},
	"putretention":  {method: "PUT", query: "retention=", body: retention},
	"getretention":  {method: "GET", query: "retention=", counted: []string{"<Mode>"}},
	"puthold":       {method: "PUT", query: "legal-hold=", body: hold},
	"gethold":       {method: "GET", query: "legal-hold=", counted: []string{"<Status>"}},
}

const xmlns = ` xmlns="http://s3.amazonaws.com/doc/2006-03-01/"`

func batch(r *client.Request, _ time.Time) []byte {
	b := []byte("<Delete" + xmlns + ">")
	for _, key := range r.Batch {
		var escaped bytes.Buffer
		_ = xml.EscapeText(&escaped, key) // never fails
		b = fmt.Appendf(b, "<Object><Key>%s</Key></Object>", escaped.Bytes())
	}
	return append(b, "</Delete>"...)
}

func tags(*client.Request, time.Time) []byte {
	return []byte("<Tagging" + xmlns + "><TagSet><Tag><Key>tool</Key><Value>cnsbench</Value></Tag>" +
		"<Tag><Key>kind</Key><Value>benchmark</Value></Tag></TagSet></Tagging>")
}

// retention is one that an account may end before its time, so that a run can clean up.
func retention(r *client.Request, now time.Time) []byte {
	return fmt.Appendf(nil, "<Retention%s><Mode>GOVERNANCE</Mode><RetainUntilDate>%s</RetainUntilDate></Retention>",
		xmlns, now.Add(r.Options.RetainFor()).UTC().Format(time.RFC3339))
}

// hold is off: one that is on would stay on the object.
func hold(*client.Request, time.Time) []byte {
	return []byte("<LegalHold" + xmlns + "><Status>OFF</Status></LegalHold>")
}

// call executes the operation that r names.
func (c *adapter) call(ctx context.Context, r *client.Request, res *client.Result) {
	d, ok := calls[r.Call]
	if !ok {
		res.NotOffered(r.Call, c.store.config.Clock.Now())
		return
	}
	id, lookups := "", 0
	if d.version {
		list, found := c.versions(ctx, r.Container, r.Object, maxVersions, res)
		if !found {
			return
		}
		if id = oldest(list, r.Object); id == "" {
			res.Status, res.Code = 404, "NoSuchVersion"
			return
		}
		lookups = res.Attempts
		c.Begin(res) // the listing is not part of the operation's time
	}
	object := r.Object
	if d.container {
		object = nil
	}
	c.address(r.Container, object)
	switch {
	case id != "":
		c.query = encode(append(c.query, "versionId="...), []byte(id), true)
	case d.query == versionsQuery:
		c.versionsQuery(r.Object, r.MaxKeys)
	default:
		c.query = append(c.query, d.query...)
	}
	if c.request(ctx, &d, r, res) {
		c.lateError(res)
		for _, name := range d.counted {
			res.Keys += bytes.Count(c.Answer, []byte(name))
		}
	}
	res.Attempts += lookups
}

func (c *adapter) request(ctx context.Context, d *call, r *client.Request, res *client.Result) bool {
	switch {
	case d.body != nil:
		content := d.body(r, c.store.config.Now())
		sum := md5.Sum(content)
		c.extra = append(c.extra, header{"content-md5", base64.StdEncoding.EncodeToString(sum[:])})
		return c.body(ctx, d.method, content, res)
	case d.version && d.method == "GET":
		c.Hash = nil
		c.head(d.method)
		c.explained(c.Read(ctx, r, res), res)
		return false // its content is none of XML
	}
	c.head(d.method)
	return c.explained(c.Send(ctx, res, true), res)
}

const (
	versionsQuery = "versions="
	maxVersions   = 1000 // of a page, the most that servers give
)

// versionsQuery is the query of a listing of versions.
func (c *adapter) versionsQuery(prefix []byte, most int) {
	c.query = strconv.AppendInt(append(c.query, "max-keys="...), int64(most), 10)
	if len(prefix) > 0 {
		c.query = encode(append(c.query, "&prefix="...), prefix, true)
	}
	c.query = append(c.query, "&versions="...)
}

// version is one of an object; a delete marker is one too.
type version struct {
	key, id        string
	marker, latest bool
}

// versions lists versions, the newest of a key first.
func (c *adapter) versions(ctx context.Context, container, prefix []byte, most int, res *client.Result) ([]version,
	bool) {
	c.address(container, nil)
	c.versionsQuery(prefix, most)
	c.head("GET")
	if !c.explained(c.Send(ctx, res, true), res) {
		return nil, false
	}
	var list []version
	for _, name := range []string{"Version", "DeleteMarker"} {
		for one := range elements(c.Answer, name) {
			key, hasKey := element(one, "Key")
			id, hasID := element(one, "VersionId")
			if hasKey && hasID {
				list = append(list, version{key, id, name == "DeleteMarker",
					bytes.Contains(one, []byte("<IsLatest>true"))})
			}
		}
	}
	return list, true
}

// oldest is the id of a key's oldest version with a content.
func oldest(list []version, key []byte) (id string) {
	for _, v := range list {
		if v.key == string(key) && !v.marker {
			id = v.id
		}
	}
	return id
}

// noVersions are the statuses by which a server refuses to list versions that it does not keep, or does not show to
// this account.
var noVersions = []int{400, 403, 405, 501}

// purge removes all versions of deleted objects, and their delete markers, also those that are retained in governance
// mode. It refuses a container that has an object, and returns the versions of our mark, which it leaves.
func (c *adapter) purge(ctx context.Context, container []byte, res *client.Result) (marks []version, ok bool) {
	for {
		list, ok := c.versions(ctx, container, nil, maxVersions, res)
		if !ok {
			return nil, res.Failure == "" && slices.Contains(noVersions, res.Status)
		}
		full := len(list) >= maxVersions
		marks = slices.DeleteFunc(slices.Clone(list), func(v version) bool { return v.key != client.Marker })
		list = slices.DeleteFunc(list, func(v version) bool { return v.key == client.Marker })
		if len(list) == 0 {
			return marks, true
		}
		if slices.ContainsFunc(list, func(v version) bool { return v.latest && !v.marker }) {
			res.Status, res.Code = 409, "BucketNotEmpty"
			return nil, false
		}
		if full {
			list = whole(list)
		}
		for _, v := range list {
			if !c.removeVersion(ctx, container, v, res) {
				return nil, false
			}
		}
	}
}

// whole leaves out the delete markers of the last key of a listing that does not have all of its versions: without them
// the object would be there again.
func whole(list []version) []version {
	last := slices.MaxFunc(list, func(a, b version) int { return cmp.Compare(a.key, b.key) }).key
	before := slices.DeleteFunc(slices.Clone(list), func(v version) bool { return v.marker && v.key == last })
	if len(before) == 0 { // it has nothing else
		return list
	}
	return before
}

func (c *adapter) removeVersion(ctx context.Context, container []byte, v version, res *client.Result) bool {
	c.address(container, []byte(v.key))
	c.query = encode(append(c.query, "versionId="...), []byte(v.id), true)
	c.extra = append(c.extra, header{"x-amz-bypass-governance-retention", "true"})
	c.head("DELETE")
	return c.explained(c.Send(ctx, res, false), res)
}

// removeMark removes the versions of our mark, if the server has any, the newest last: it is the one that is read.
func (c *adapter) removeMark(ctx context.Context, container []byte, marks []version, res *client.Result) bool {
	for _, v := range slices.Backward(marks) {
		if !c.removeVersion(ctx, container, v, res) {
			return false
		}
	}
	return len(marks) > 0 || c.simple(ctx, "DELETE", container, []byte(client.Marker), res)
}
