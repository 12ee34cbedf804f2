package backend

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/s3"
	"github.com/cnsbench/cnsbench/internal/object/spread"
	"github.com/cnsbench/cnsbench/internal/op"
)

var s3Storage = Descriptor{
	Kind:  "s3",
	Types: []string{"s3v4"},
	Keys: append([]string{"endpoint", "region", "path_style_access", "signature", "payload", "is_range_request",
		"file_length",
		"chunk_length", "accesskey", "secretkey", "sessiontoken"}, slices.Concat(httpKeys, spread.Keys)...),
	Variables: []Variable{{"accesskey", "AWS_ACCESS_KEY_ID"}, {"secretkey", "AWS_SECRET_ACCESS_KEY"},
		{"sessiontoken", "AWS_SESSION_TOKEN"}},
	Unsigned: "write accesskey and secretkey, name a file by credentials, or set AWS_ACCESS_KEY_ID and " +
		"AWS_SECRET_ACCESS_KEY",
	Traits: model.Traits{Chunked: model.ChunkedRefused, HostNames: func(m *model.Store) bool {
		return m.Settings["path_style_access"] == "false"
	}},
	Check: func(m *model.Store, storageHas, _ func(string) bool) []Finding {
		switch {
		case !storageHas("endpoint") && !storageHas(spread.Endpoints):
			return []Finding{{Message: "storage s3 does not say where it is",
				Hint: "endpoint=http://HOST:PORT; COSBench's default is http://s3.amazonaws.com"}}
		case m.Settings["path_style_access"] == "" && hasHostName(m.Settings["endpoint"]):
			return []Finding{{Warning: true, Message: "buckets are part of the path: COSBench has them in the " +
				"host's name, " +
				"which path_style_access=false says here"}}
		}
		return nil
	},
	Open: func(m *model.Store, secrets model.Secrets, clock op.Clock) (client.Store, error) {
		urls, err := spread.List(m.Settings, "endpoint")
		if err != nil {
			return nil, fmt.Errorf("s3: %w", err)
		}
		return spread.New(spread.Config{Settings: m.Settings, URLs: urls, Clock: clock,
			Open: func(address, dial string) (client.Store, error) {
				settings := map[string]string{}
				maps.Copy(settings, m.Settings)
				settings["endpoint"] = address
				return s3.New(s3.Config{Settings: settings, Dial: dial, Clock: clock, Credentials: s3.Credentials{
					AccessKey: secrets["accesskey"], SecretKey: secrets["secretkey"],
					SessionToken: secrets["sessiontoken"]}})
			}})
	},
	OnNullServer: func(m *model.Store, address string) {
		m.Settings["endpoint"], m.Settings["path_style_access"] = address, "true"
		m.Secrets = model.Secrets{"accesskey": "ceiling", "secretkey": "ceiling"}
	},
}

// hasHostName reports whether an address has a host name: COSBench's library puts no bucket before an IP address.
func hasHostName(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return false
	}
	_, err = netip.ParseAddr(u.Hostname())
	return err != nil
}
