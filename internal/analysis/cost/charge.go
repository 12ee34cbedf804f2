package cost

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Usage is what a run used. Amounts that are unknown are nil, and named in Unobserved.
type Usage struct {
	// Run is the charged time: from the start of the run to its end.
	Run time.Duration
	// Nodes are charged for the whole of Run.
	Nodes []Node
	// Classes are volumes and snapshots by StorageClass.
	Classes map[string]*ClassUse
	// Requests to object storage by kind, also those that failed and those sent again.
	Requests map[string]float64
	// Received are the bytes read from object storage.
	Received float64
	// CPUSeconds are those of the workloads.
	CPUSeconds *float64
	// Ops are control operations that succeeded, IOs the I/Os and object operations that did.
	Ops int64
	IOs *float64
	// Uncounted are the actions whose I/Os are not in IOs, because they are unknown.
	Uncounted []string
	// Moved are the bytes that were read and written.
	Moved *float64
	// Unobserved names the resources of which the bundle does not tell the amount, with the reason.
	Unobserved []string
}

// Node is a machine of a run.
type Node struct {
	Name string
	Type string // instance type; "": unknown
}

// ClassUse is what was provisioned of one class.
type ClassUse struct {
	Volumes, Snapshots int
	// VolumeHours is the sum of the volumes' times, ByteHours that of their sizes times their times.
	VolumeHours, ByteHours, SnapshotByteHours float64
}

// Result is the cost of one run.
type Result struct {
	Currency string `json:"currency"`
	// Source is that of the prices, PricesSHA256 that of their list.
	Source       string `json:"source,omitempty"`
	PricesSHA256 string `json:"pricesSHA256"`
	// RunNs is the charged time.
	RunNs int64 `json:"runNs"`
	// CPUSeconds are those of the workloads: a resource that nodes' prices include.
	CPUSeconds *float64 `json:"cpuSeconds"`
	// Charges are the resources that were used, with their cost where they have a price.
	Charges []Charge `json:"charges"`
	// Total is the sum of the charges that have a price; null: none has.
	Total *float64 `json:"total"`
	// Rates are Total by amount.
	Rates []Rate `json:"rates"`
	// Without names what Total does not include.
	Without []string `json:"without"`

	unpriced []string
}

// Charge is one resource.
type Charge struct {
	Resource string  `json:"resource"` // node, volume, provisioned IOPS, …
	Name     string  `json:"name,omitempty"`
	Quantity float64 `json:"quantity"`
	Unit     string  `json:"unit"`
	// Price is of one unit; null: it has none. Cost is Quantity times Price.
	Price *float64 `json:"price"`
	Cost  *float64 `json:"cost"`
}

// Rate is the cost of a fixed amount.
type Rate struct {
	// Name says of what: trial, million operations.
	Name string `json:"name"`
	// Value is null without a price, and if the amount is unknown or 0; Reason then says which. If a part of the amount
	// is unknown Value is an upper bound, and Reason says of what.
	Value  *float64 `json:"value"`
	Reason string   `json:"reason,omitempty"`
	// Amount is what Total is divided by, in units of Name.
	Amount *float64 `json:"amount"`
}

// The names of rates.
const (
	PerTrial   = "trial"
	PerOps     = "million control operations"
	PerIOs     = "million I/Os or requests"
	PerGB      = "GB moved"
	PerGBMonth = "GB-month provisioned"
)

// Metric is the name of a rate as a metric of a comparison.
func (r *Rate) Metric() string { return "cost per " + r.Name }

// Of prices a usage. The figures are sums of products, without rounding.
func Of(u *Usage, p *Prices) *Result {
	r := &Result{Currency: p.Currency, Source: p.Source, PricesSHA256: p.SHA256, RunNs: u.Run.Nanoseconds(),
		CPUSeconds: u.CPUSeconds, Charges: []Charge{}, Without: []string{}}
	r.nodes(u, p)
	for _, name := range slices.Sorted(maps.Keys(u.Classes)) {
		r.class(name, u.Classes[name], p)
	}
	for _, kind := range slices.Sorted(maps.Keys(u.Requests)) {
		r.add(Charge{Resource: kind + " requests", Quantity: u.Requests[kind] / 1e6, Unit: "million",
			Price: p.RequestsPerMillion[kind]})
	}
	if u.Received > 0 {
		r.add(Charge{Resource: "transfer out", Quantity: u.Received / 1e9, Unit: "GB", Price: p.TransferOutPerGB})
	}
	for _, c := range r.Charges {
		if c.Cost != nil {
			sum := *c.Cost
			if r.Total != nil {
				sum += *r.Total
			}
			r.Total = &sum
		}
	}
	r.Without = append(r.Without, u.Unobserved...)
	r.rates(u)
	return r
}

// nodes charges the nodes, those of one name in the list together.
func (r *Result) nodes(u *Usage, p *Prices) {
	count, price := map[string]int{}, map[string]*float64{}
	for _, n := range u.Nodes {
		name := n.Type
		if _, own := p.Nodes[n.Name]; own || name == "" {
			name = n.Name
		}
		count[name]++
		price[name] = p.node(n)
	}
	for _, name := range slices.Sorted(maps.Keys(count)) {
		r.add(Charge{Resource: "node", Name: name, Quantity: float64(count[name]) * u.Run.Hours(), Unit: "h",
			Price: price[name]})
	}
}

// class charges the volumes and snapshots of one class.
func (r *Result) class(name string, c *ClassUse, p *Prices) {
	price, ok := p.class(name)
	r.add(Charge{Resource: "volume", Name: name, Quantity: c.ByteHours / 1e9 / HoursPerMonth, Unit: "GB-month",
		Price: perGB(price.PerGBMonth, price.PerGiBMonth)})
	for _, x := range []struct {
		what, unit    string
		amount, price *float64
	}{{"provisioned IOPS", "IOPS-month", price.IOPS, price.PerIOPSMonth},
		{"provisioned throughput", "MB/s-month", price.MBps, price.PerMBpsMonth}} {
		switch {
		case x.amount != nil:
			r.add(Charge{Resource: x.what, Name: name, Quantity: *x.amount * c.VolumeHours / HoursPerMonth, Unit: x.unit,
				Price: x.price})
		case ok: // of a class without prices all is named at once
			r.noPrice(x.what + " of " + name)
		}
	}
	if c.Snapshots > 0 {
		r.add(Charge{Resource: "snapshot", Name: name, Quantity: c.SnapshotByteHours / 1e9 / HoursPerMonth,
			Unit: "GB-month", Price: perGB(price.SnapshotPerGBMonth, price.SnapshotPerGiBMonth)})
	}
}

// add adds a charge; one without a price is named in Without.
func (r *Result) add(c Charge) {
	if c.Quantity == 0 {
		return
	}
	if c.Price != nil {
		cost := c.Quantity * *c.Price
		c.Cost = &cost
	} else {
		of := c.Resource
		if c.Name != "" {
			of += " " + c.Name
		}
		r.noPrice(of)
	}
	r.Charges = append(r.Charges, c)
}

// noPrice names a resource that was used and has no price.
func (r *Result) noPrice(of string) {
	r.unpriced, r.Without = append(r.unpriced, of), append(r.Without, of+": no price")
}

// Unpriced names the resources that were used and have no price: "volume fast". What a class with prices provisions
// beyond its size counts as used, unless its amount is priced or 0.
func (r *Result) Unpriced() []string { return r.unpriced }

// rates divides the total by what was done.
func (r *Result) rates(u *Usage) {
	one, ops := 1.0, float64(u.Ops)/1e6
	var provisioned float64
	for _, c := range u.Classes {
		provisioned += c.ByteHours / 1e9 / HoursPerMonth
	}
	for _, x := range []struct {
		name   string
		amount *float64
	}{{PerTrial, &one}, {PerOps, &ops}, {PerIOs, scaled(u.IOs, 1e-6)}, {PerGB, scaled(u.Moved, 1e-9)},
		{PerGBMonth, &provisioned}} {
		rate := Rate{Name: x.name, Amount: x.amount}
		switch {
		case r.Total == nil:
			rate.Reason = "nothing that was used has a price"
		case x.amount == nil:
			rate.Reason = "not observed"
		case *x.amount == 0:
			rate.Reason = "there were none"
		default:
			if v := *r.Total / *x.amount; !math.IsInf(v, 0) {
				rate.Value = &v
			}
			if x.name == PerIOs && len(u.Uncounted) > 0 {
				rate.Reason = "at most: the I/Os of " + strings.Join(u.Uncounted, ", ") + " are unknown"
			}
		}
		r.Rates = append(r.Rates, rate)
	}
}

func scaled(x *float64, by float64) *float64 {
	if x == nil {
		return nil
	}
	v := *x * by
	return &v
}
