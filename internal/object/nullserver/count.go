package nullserver

import (
	"encoding/json"
	"sync/atomic"
)

// CountsPath is the path of the number of requests for objects that the server has answered, as Counts in JSON. It is
// not a valid name of a bucket.
const CountsPath = "/-/requests"

// Counts are requests of objects by method; Other are those of anything else.
type Counts struct{ Get, Put, Other int64 }

type counters struct{ get, put, other atomic.Int64 }

func (c *counters) count(q *request, object string) {
	switch {
	case object == "" || q.copied || q.query != "" && q.query != "x-id=GetObject" && q.query != "x-id=PutObject":
		c.other.Add(1)
	case q.method == "GET":
		c.get.Add(1)
	case q.method == "PUT":
		c.put.Add(1)
	default:
		c.other.Add(1)
	}
}

func (c *counters) json() []byte {
	b, _ := json.Marshal(Counts{c.get.Load(), c.put.Load(), c.other.Load()}) // integers always can be
	return b
}
