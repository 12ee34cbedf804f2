package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/s3"
	"github.com/cnsbench/cnsbench/internal/op"
)

// firstPutSize is the size of the object of a first PUT, in bytes.
const firstPutSize = 4096

// putOnce is an engine.PutOnce by the client of object workloads. The connection is part of it: a user's first PUT
// connects too.
func putOnce(ctx context.Context, clock op.Clock, b engine.Bucket, object string) (op.Time, bool, error) {
	store, err := s3.New(s3.Config{Clock: clock,
		Settings:    map[string]string{"endpoint": b.Endpoint, "region": b.Region, "path_style_access": "true"},
		Credentials: s3.Credentials{AccessKey: b.AccessKey, SecretKey: b.SecretKey}})
	if err != nil {
		return op.Never, false, err
	}
	c, err := store.Client()
	if err != nil {
		return op.Never, false, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, c.Abort)()
	r := client.Request{Verb: client.Put, Container: []byte(b.Name), Object: []byte(object), Size: firstPutSize}
	var res client.Result
	if c.Do(ctx, &r, &res); !res.OK() {
		return op.Never, res.Status != 0, answer(&res)
	}
	at := res.Ended
	r.Verb = client.Delete
	if c.Do(ctx, &r, &res); !res.OK() && !res.Absent() {
		return at, false, fmt.Errorf("delete the object: %w", answer(&res))
	}
	return at, false, nil
}

// answer is the error of a result.
func answer(res *client.Result) error {
	if res.Detail == "" {
		return errors.New(res.Label())
	}
	return fmt.Errorf("%s: %s", res.Label(), res.Detail)
}
