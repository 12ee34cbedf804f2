package swift

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"

	"github.com/cnsbench/cnsbench/internal/object/client"
)

// versionsHeader says whether a container keeps versions of its objects; one that never did does not have it.
const versionsHeader = "X-Versions-Enabled"

// version is one of an object; a delete marker is one too.
type version struct {
	Name   string `json:"name"`
	ID     string `json:"version_id"`
	Latest bool   `json:"is_latest"`
	Type   string `json:"content_type"`
}

func (v *version) marker() bool { return v.Type == "application/x-deleted;swift_versions_deleted=1" }

// versions lists versions, the newest of a name first.
func (c *adapter) versions(ctx context.Context, container, prefix []byte, most int, res *client.Result) (list []version,
	ok bool) {
	query := fmt.Sprintf("versions=&format=json&limit=%d", most)
	if len(prefix) > 0 {
		query += "&prefix=" + url.QueryEscape(string(prefix))
	}
	c.head("GET", container, nil, query)
	if !c.explained(c.http.Send(ctx, res, true), res) {
		return nil, false
	}
	if err := json.Unmarshal(c.http.Answer, &list); err != nil {
		res.Status, res.Detail = 502, fmt.Sprintf("the list of versions: %v", err)
		return nil, false
	}
	return list, true
}

func (c *adapter) listVersions(ctx context.Context, r *client.Request, res *client.Result) {
	list, _ := c.versions(ctx, r.Container, r.Object, r.MaxKeys, res)
	res.Keys = len(list)
}

// mostVersions is what a listing asks for.
const mostVersions = 1000

// oldest returns the query of an object's oldest version with a content. The listing that finds it is an attempt of the
// operation, and no part of its time.
func (c *adapter) oldest(ctx context.Context, r *client.Request, res *client.Result) (query string, attempts int) {
	list, ok := c.versions(ctx, r.Container, r.Object, mostVersions, res)
	if !ok {
		return "", 0
	}
	for i := range list {
		if v := &list[i]; v.Name == string(r.Object) && !v.marker() {
			query = "version-id=" + url.QueryEscape(v.ID)
		}
	}
	if query == "" {
		res.Status = 404
		return "", 0
	}
	attempts = res.Attempts
	c.http.Begin(res)
	return query, attempts
}

func (c *adapter) readVersion(ctx context.Context, r *client.Request, res *client.Result) {
	query, attempts := c.oldest(ctx, r, res)
	if query == "" {
		return
	}
	c.head("GET", r.Container, r.Object, query)
	c.explained(c.http.Read(ctx, r, res), res)
	res.Attempts += attempts
}

func (c *adapter) deleteVersion(ctx context.Context, r *client.Request, res *client.Result) {
	query, attempts := c.oldest(ctx, r, res)
	if query == "" {
		return
	}
	c.head("DELETE", r.Container, r.Object, query)
	c.explained(c.http.Send(ctx, res, false), res)
	res.Attempts += attempts
}

// purge removes all versions of deleted objects, and their delete markers, and ends versioning: without that Swift
// removes no container. It refuses a container that has an object.
func (c *adapter) purge(ctx context.Context, container []byte, res *client.Result) bool {
	for {
		list, ok := c.versions(ctx, container, nil, mostVersions, res)
		if !ok {
			return false
		}
		if len(list) == 0 {
			break
		}
		if slices.ContainsFunc(list, func(v version) bool { return v.Latest && !v.marker() }) {
			res.Status = 409
			return false
		}
		for i := range list {
			c.head("DELETE", container, []byte(list[i].Name), "version-id="+url.QueryEscape(list[i].ID))
			if !c.explained(c.http.Send(ctx, res, false), res) {
				return false
			}
		}
	}
	c.head("POST", container, nil, "")
	c.with(versionsHeader, "false")
	c.with("Content-Length", "0")
	return c.explained(c.http.Send(ctx, res, false), res)
}
