// Package cost computes what a run costs: the resources that its bundle says it used, times the prices of a list that
// the user gives. There are no built-in prices: without a list there is no cost, and a resource without a price is
// named beside every figure.
package cost

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// MaxPrices is the most bytes of a list of prices.
const MaxPrices = 1 << 20

// HoursPerMonth converts prices per month: 365 days in 12 months.
const HoursPerMonth = 730

// other is the entry for all that have none of their own.
const other = "*"

// Prices is a list of prices in one currency. Prices that are absent are unknown, not 0.
type Prices struct {
	// Currency is a code of ISO 4217, such as EUR.
	Currency string `json:"currency"`
	// Source says where the prices are from, and of which day.
	Source string `json:"source,omitempty"`
	// Nodes are by name of the node or by instance type; "*" is every other node.
	Nodes map[string]NodePrice `json:"nodes,omitempty"`
	// StorageClasses are by name; "*" is every other class.
	StorageClasses map[string]ClassPrice `json:"storageClasses,omitempty"`
	// RequestsPerMillion are by kind of request: the keys of Kinds.
	RequestsPerMillion map[string]*float64 `json:"requestsPerMillion,omitempty"`
	// TransferOutPerGB is the price of 10^9 bytes read from object storage.
	TransferOutPerGB *float64 `json:"transferOutPerGB,omitempty"`
	// SHA256 is that of the list's text. Parse sets it.
	SHA256 string `json:"-"`
}

// NodePrice is the price of a node.
type NodePrice struct {
	PerHour *float64 `json:"perHour"`
}

// ClassPrice has the prices of a StorageClass. A month has HoursPerMonth hours, a GB 10^9 and a GiB 2^30 bytes.
type ClassPrice struct {
	PerGBMonth          *float64 `json:"perGBMonth,omitempty"`
	PerGiBMonth         *float64 `json:"perGiBMonth,omitempty"`
	SnapshotPerGBMonth  *float64 `json:"snapshotPerGBMonth,omitempty"`
	SnapshotPerGiBMonth *float64 `json:"snapshotPerGiBMonth,omitempty"`
	// IOPS and MBps are what is charged for each volume: what is provisioned less what the provider includes.
	IOPS         *float64 `json:"iops,omitempty"`
	PerIOPSMonth *float64 `json:"perIOPSMonth,omitempty"`
	MBps         *float64 `json:"mbps,omitempty"`
	PerMBpsMonth *float64 `json:"perMBpsMonth,omitempty"`
}

// Kinds are the kinds of requests that can have a price.
var Kinds = []string{"PUT", "GET", "HEAD", "LIST", "DELETE", "COPY"}

// currency is the form of a code of ISO 4217.
var currency = regexp.MustCompile(`^[A-Z]{3}$`)

// Parse reads a list of prices in YAML or JSON. It is an error if a field is unknown or given twice, a price is
// negative or not a number, the currency is missing, or two units of one price are given.
func Parse(text []byte) (*Prices, error) {
	if len(text) > MaxPrices {
		return nil, fmt.Errorf("invalid prices: more than %d bytes", MaxPrices)
	}
	p := &Prices{SHA256: fmt.Sprintf("%x", sha256.Sum256(text))}
	if err := yaml.UnmarshalStrict(text, p); err != nil {
		text := err.Error()
		for _, prefix := range []string{"error unmarshaling JSON: ", "while decoding JSON: ", "json: "} {
			text = strings.TrimPrefix(text, prefix)
		}
		return nil, fmt.Errorf("invalid prices: %s", text)
	}
	return p, p.check()
}

func (p *Prices) check() error {
	if !currency.MatchString(p.Currency) {
		return fmt.Errorf("invalid currency %q: want a code such as EUR or USD; a list has one currency", p.Currency)
	}
	var errs []error
	one := func(name string, price *float64) {
		if price != nil && !(*price >= 0 && *price <= maxPrice) {
			errs = append(errs, fmt.Errorf("invalid %s %v: want a number from 0 to %g", name, *price, float64(maxPrice)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Nodes)) {
		if price := p.Nodes[name].PerHour; price == nil {
			errs = append(errs, fmt.Errorf("nodes.%s: perHour is missing", name))
		} else {
			one("nodes."+name+".perHour", price)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.StorageClasses)) {
		c := p.StorageClasses[name]
		errs = append(errs, c.check("storageClasses."+name, one)...)
	}
	for _, kind := range slices.Sorted(maps.Keys(p.RequestsPerMillion)) {
		if !slices.Contains(Kinds, kind) {
			errs = append(errs, fmt.Errorf("unknown kind of request %q: want one of %s", kind, strings.Join(Kinds, ", ")))
		}
		one("requestsPerMillion."+kind, p.RequestsPerMillion[kind])
	}
	one("transferOutPerGB", p.TransferOutPerGB)
	if len(p.Nodes)+len(p.StorageClasses)+len(p.RequestsPerMillion) == 0 && p.TransferOutPerGB == nil {
		errs = append(errs, errors.New("no prices: want nodes, storageClasses, requestsPerMillion or transferOutPerGB"))
	}
	return errors.Join(errs...)
}

// maxPrice bounds a price, so that sums stay finite.
const maxPrice = 1e12

func (c *ClassPrice) check(at string, one func(string, *float64)) (errs []error) {
	for _, f := range []struct {
		name  string
		price *float64
	}{{"perGBMonth", c.PerGBMonth}, {"perGiBMonth", c.PerGiBMonth}, {"snapshotPerGBMonth", c.SnapshotPerGBMonth},
		{"snapshotPerGiBMonth", c.SnapshotPerGiBMonth}, {"iops", c.IOPS}, {"perIOPSMonth", c.PerIOPSMonth},
		{"mbps", c.MBps}, {"perMBpsMonth", c.PerMBpsMonth}} {
		one(at+"."+f.name, f.price)
	}
	if c.PerGBMonth != nil && c.PerGiBMonth != nil {
		errs = append(errs, fmt.Errorf("%s has perGBMonth and perGiBMonth: want one unit", at))
	}
	if c.SnapshotPerGBMonth != nil && c.SnapshotPerGiBMonth != nil {
		errs = append(errs, fmt.Errorf("%s has snapshotPerGBMonth and snapshotPerGiBMonth: want one unit", at))
	}
	if (c.IOPS == nil) != (c.PerIOPSMonth == nil) {
		errs = append(errs, fmt.Errorf("%s: iops and perIOPSMonth go together", at))
	}
	if (c.MBps == nil) != (c.PerMBpsMonth == nil) {
		errs = append(errs, fmt.Errorf("%s: mbps and perMBpsMonth go together", at))
	}
	return errs
}

// node is the price of a node; nil: there is none.
func (p *Prices) node(n Node) *float64 {
	for _, key := range []string{n.Name, n.Type, other} {
		if price, ok := p.Nodes[key]; ok && key != "" {
			return price.PerHour
		}
	}
	return nil
}

// class has the prices of a class; false: it has none.
func (p *Prices) class(name string) (ClassPrice, bool) {
	for _, key := range []string{name, other} {
		if c, ok := p.StorageClasses[key]; ok {
			return c, true
		}
	}
	return ClassPrice{}, false
}

// perGB is a price per 10^9 bytes of one in either unit; nil: neither is given.
func perGB(gb, gib *float64) *float64 {
	if gib == nil {
		return gb
	}
	price := *gib * 1e9 / math.Exp2(30)
	return &price
}
