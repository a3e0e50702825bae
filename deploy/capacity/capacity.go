// Package capacity estimates how large an installation has to be.
package capacity

import (
	"errors"
	"fmt"
	"math"
)

// A Load is what is sent, and for how long it is kept.
type Load struct {
	EntriesPerSecond float64 // on average over a day
	EntryBytes       float64 // on average, as JSON
	RetentionDays    float64 // in the log store
	Peak             float64 // the busiest minute as a multiple of the average
	Batch            float64 // entries of a request
	LogDays          float64 // in Kafka, WEIR_LOG_RETENTION
	TransferMonths   float64 // in the ledger, WEIR_LEDGER_TRANSFERS_MONTHS
}

// Validate returns an error that names a value nobody can have.
func (l Load) Validate() error {
	for name, value := range map[string]float64{
		"entries per second": l.EntriesPerSecond, "bytes of an entry": l.EntryBytes, "days of retention": l.RetentionDays, "entries of a request": l.Batch,
		"days of the log": l.LogDays, "months of transfers": l.TransferMonths,
	} {
		if !(value > 0) || math.IsInf(value, 0) {
			return fmt.Errorf("the %s must be more than 0, and are %v", name, value)
		}
	}
	if !(l.Peak >= 1) || math.IsInf(l.Peak, 0) {
		return errors.New("the peak must be at least 1: it is a multiple of the average")
	}
	if l.Batch < 1 {
		return fmt.Errorf("a request has at least 1 entry, and not %v", l.Batch)
	}
	return nil
}

// Prices are of a month, in any currency.
type Prices struct {
	Core   float64 // a core with 4 GB of memory
	Disk   float64 // a GB of SSD
	Object float64 // a GB of object storage
}

// Validate returns an error that names a price that is none.
func (p Prices) Validate() error {
	for name, price := range map[string]float64{"core": p.Core, "disk": p.Disk, "object": p.Object} {
		if !(price >= 0) || math.IsInf(price, 0) {
			return fmt.Errorf("the %s price must be 0 or more, and is %v", name, price)
		}
	}
	return nil
}

// Coefficients are what an entry costs. Those of deploy/docs/size.md name the
// benchmarks that measure them.
type Coefficients struct {
	Entries        float64 // per second and core of services and PostgreSQL, at full load
	EntryBytes     float64 // of these entries; longer ones cost in proportion
	BrokerEntries  float64 // per second and core of a broker, for each copy
	PostgresShare  float64 // of the work of services and PostgreSQL
	LogOverhead    float64 // bytes of an entry in Kafka besides its text
	Stored         float64 // bytes that the log store keeps of a byte of text
	StoredElse     float64 // the same of ClickHouse
	TransferBytes  float64 // that the ledger keeps of a request
	PartitionRate  float64 // entries per second that one partition is good for
	ServerBytes    float64 // the disk of one PostgreSQL server, so that a backup comes back within hours
	ServerCores    float64
	ReadCores      float64 // of it, for searches
	RecentDays     float64 // that stay in PostgreSQL where older ones move to ClickHouse
	LocalDays      float64 // that ClickHouse has on its own disks
	Copies         float64 // that it has
	Busy           float64 // share of a core that is planned for, at the peak
	Free           float64 // share of a disk that is left free
	Replicas       float64 // of the log
	MachineCores   float64 // of one machine but PostgreSQL's, at most
	MachineBytes   float64 // of its disk
	MemoryOfCore   float64 // bytes
	LeastOfService float64 // bytes of memory
}

const (
	gb  = 1e9
	gib = 1 << 30
	tib = 1 << 40
)

// Measured are the figures of deploy/docs/size.md.
var Measured = Coefficients{
	Entries: 65_000, EntryBytes: 484, BrokerEntries: 62_000, PostgresShare: 0.17,
	LogOverhead: 7, Stored: 53.0 / 325, StoredElse: 71.0 / 325, TransferBytes: 600,
	PartitionRate: 20_000, ServerBytes: 12 * tib, ServerCores: 32, ReadCores: 2, RecentDays: 2, LocalDays: 14, Copies: 2,
	Busy: 0.6, Free: 1.0 / 3, Replicas: 3, MachineCores: 8, MachineBytes: 16 * tib, MemoryOfCore: 4 * gib, LeastOfService: gib,
}

// Machines are alike.
type Machines struct {
	Count  int     `json:"count"`
	Cores  int     `json:"cores"`        // of each
	Memory float64 `json:"memory_bytes"` // of each
	Disk   float64 `json:"disk_bytes"`   // of each
}

// A Plan is what a load needs.
type Plan struct {
	Installations int      `json:"installations"` // among which organizations are split, where one PostgreSQL server is too small; all else is of one
	PerDay        float64  `json:"bytes_per_day"` // of text
	Partitions    int      `json:"partitions"`    // of weir.logs.v1
	Services      Machines `json:"services"`      // with the gateway
	Brokers       Machines `json:"brokers"`
	Postgres      Machines `json:"postgresql"`         // a server and its standby
	Ledger        float64  `json:"ledger_bytes"`       // of PostgreSQL's disk
	ClickHouse    Machines `json:"clickhouse"`         // none where PostgreSQL holds all entries
	Objects       float64  `json:"object_bytes"`       // for what ClickHouse holds longer
	MaxEntries    float64  `json:"postgresql_entries"` // per second, that PostgreSQL alone holds for the load's retention
}

const (
	secondsOfDay = 24 * 60 * 60
	daysOfMonth  = 365.0 / 12
)

// For returns what a valid load needs.
func (c Coefficients) For(load Load) Plan {
	plan := c.one(load)
	if beyond := max(plan.Postgres.Disk/c.ServerBytes, (float64(plan.Postgres.Cores)-c.ReadCores)/(c.ServerCores-c.ReadCores)); beyond > 1 {
		part := load
		part.EntriesPerSecond /= math.Ceil(beyond)
		plan = c.one(part)
		plan.Installations = int(math.Ceil(beyond))
	}
	return plan
}

// one is the plan of one installation, whose PostgreSQL server may be too large.
func (c Coefficients) one(load Load) Plan {
	peak, daily := load.EntriesPerSecond*load.Peak, load.EntriesPerSecond*secondsOfDay
	work := peak * max(1, load.EntryBytes/c.EntryBytes)
	plan := Plan{
		Installations: 1,
		PerDay:        daily * load.EntryBytes,
		Partitions:    12 * int(math.Ceil(peak/c.PartitionRate/12)),
		Services:      c.machines(2, work/c.Entries*(1-c.PostgresShare), 0),
		Brokers:       c.machines(int(c.Replicas), work/c.BrokerEntries*c.Replicas, daily*(load.EntryBytes+c.LogOverhead)*c.Replicas*load.LogDays),
		Ledger:        daily / load.Batch * c.TransferBytes * load.TransferMonths * daysOfMonth,
	}
	plan.Services.Memory = max(plan.Services.Memory, programs*c.LeastOfService)
	cores, stored := work/c.Entries*c.PostgresShare, plan.PerDay*c.Stored
	plan.MaxEntries = load.EntriesPerSecond * min(c.ServerBytes*(1-c.Free)/(stored*load.RetentionDays+plan.Ledger), (c.ServerCores-c.ReadCores)*c.Busy/cores)
	days := load.RetentionDays
	if load.EntriesPerSecond > plan.MaxEntries {
		days = min(days, c.RecentDays)
		local, kept := min(load.RetentionDays, c.LocalDays), plan.PerDay*c.StoredElse*c.Copies
		plan.ClickHouse = c.machines(int(c.Copies), c.Copies*cores+c.ReadCores, kept*local)
		plan.Objects = kept * (load.RetentionDays - local)
	}
	plan.Postgres = Machines{Count: 2, Cores: int(math.Ceil(cores/c.Busy + c.ReadCores)), Disk: (stored*days + plan.Ledger) / (1 - c.Free)}
	plan.Postgres.Memory = float64(plan.Postgres.Cores) * c.MemoryOfCore
	return plan
}

// programs are the gateway and the four services, of which each machine runs one replica.
const programs = 5

// machines are at least so many, for cores that are busy and bytes that are kept in all.
func (c Coefficients) machines(least int, busy, bytes float64) Machines {
	cores, disk := busy/c.Busy, bytes/(1-c.Free)
	m := Machines{Count: max(least, int(math.Ceil(cores/c.MachineCores)), int(math.Ceil(disk/c.MachineBytes)))}
	m.Cores = max(2, int(math.Ceil(cores/float64(m.Count))))
	m.Memory, m.Disk = float64(m.Cores)*c.MemoryOfCore, disk/float64(m.Count)
	return m
}

// Price returns what a plan costs a month.
func (p Prices) Price(plan Plan) float64 {
	sum := plan.Objects / gb * p.Object
	for _, m := range []Machines{plan.Services, plan.Brokers, plan.Postgres, plan.ClickHouse} {
		sum += float64(m.Count) * (float64(m.Cores)*p.Core + m.Disk/gb*p.Disk)
	}
	return sum * float64(plan.Installations)
}
