package cost_test

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/cost"
)

// TestParse names what is wrong with a list of prices.
func TestParse(t *testing.T) {
	t.Parallel()
	const good = "currency: EUR\nnodes: {large: {perHour: 0.1}}\n"
	if p, err := cost.Parse([]byte(good)); err != nil || p.Currency != "EUR" || *p.Nodes["large"].PerHour != 0.1 ||
		len(p.SHA256) != 64 {
		t.Fatalf("%+v, %v", p, err)
	}
	node := func(price string) string { return "currency: EUR\nnodes: {a: " + price + "}" }
	class := func(prices string) string { return "currency: EUR\nstorageClasses: {a: " + prices + "}" }
	for text, want := range map[string]string{
		"":                         `invalid currency ""`,
		"currency: euro":           `invalid currency "euro": want a code such as EUR or USD`,
		"currency: EUR":            "no prices: want nodes",
		"currency: EUR\nnode: {}":  `unknown field "node"`,
		"currency: [EUR, USD]":     "invalid prices",
		good + "currency: USD":     "invalid prices",
		good + "nodes: {}":         "invalid prices",
		"- 1":                      "invalid prices",
		"currency: EUR\nnodes: 5":  "invalid prices",
		"currency: EUR\nnodes: {}": "no prices",

		node("{perHour: -1}"):               "invalid nodes.a.perHour -1: want a number from 0",
		node("{perHour: .nan}"):             "invalid prices",
		node("{perHour: .inf}"):             "invalid prices",
		node("{perHour: 1e300}"):            "invalid nodes.a.perHour 1e+300",
		node("{perHour: 0,5}"):              "invalid prices",
		node("{perHour: '0.1 USD'}"):        "invalid prices",
		node("{}"):                          "nodes.a: perHour is missing",
		node("{perHour: 1, currency: USD}"): `invalid prices: unknown field "currency"`,

		class("{perGBMonth: 1, perGiBMonth: 1}"):                 "a has perGBMonth and perGiBMonth: want one unit",
		class("{snapshotPerGBMonth: 1, snapshotPerGiBMonth: 1}"): "want one unit",
		class("{iops: 100}"):                                     "iops and perIOPSMonth go together",
		class("{perMBpsMonth: 1}"):                               "mbps and perMBpsMonth go together",
		class("{perGBMonth: -0.1}"):                              "invalid storageClasses.a.perGBMonth -0.1",

		"currency: EUR\nrequestsPerMillion: {get: 1}":  `unknown kind of request "get": want one of PUT, GET`,
		"currency: EUR\nrequestsPerMillion: {GET: -1}": "invalid requestsPerMillion.GET -1",
		"currency: EUR\ntransferOutPerGB: -1":          "invalid transferOutPerGB -1",
		strings.Repeat("#", cost.MaxPrices+1):          "more than 1048576 bytes",
	} {
		_, err := cost.Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

// FuzzParse: every text is a list of finite prices, or an error.
func FuzzParse(f *testing.F) {
	f.Add([]byte("currency: EUR\nnodes: {large: {perHour: 0.1}}\n"))
	f.Add([]byte("a: &a [*a, *a]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := cost.Parse(text)
		if err == nil && p.Currency == "" {
			t.Errorf("%q has no currency", text)
		}
	})
}
