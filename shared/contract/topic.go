package contract

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// Topics. One service writes a topic, except gathered ones; its readers
// are known, too. Who publishes from tables reads back what it wrote.
const (
	TopicLogs        = "weir.logs.v1"        // written by ingest: LogsAccepted
	TopicCredentials = "weir.credentials.v1" // written by tenants: compacted, key = SHA-256 of the credential
	TopicTenants     = "weir.tenants.v1"     // written by tenants: facts, compacted, key = id of the fact: each stays until its tombstone
	TopicAccounts    = "weir.accounts.v1"    // written by ledger: compacted, key = organization
	TopicLedger      = "weir.ledger.v1"      // written by ledger: facts, kept for a limited time
	TopicGrouping    = "weir.grouping.v1"    // written by grouping: facts, kept for a limited time
	TopicIngest      = "weir.ingest.v1"      // gathered, created by ingest: uses of API keys, keys sent in plaintext; kept for a limited time
	TopicOutcomes    = "weir.outcomes.v1"    // written by ingest: outcomes of requests, kept for a limited time
	TopicAlerts      = "weir.alerts.v1"      // written by ingest: facts about alerts on searches, kept for a limited time
	TopicRules       = "weir.rules.v1"       // written by ingest: rules of projects for entries that come, compacted, key = project
	TopicErasures    = "weir.erasures.v1"    // gathered, created by tenants: what each module has erased; kept for a limited time
)

// Consumer groups. A group's name is data: it owns positions, so
// renaming it would consume everything again.
const (
	GroupLogStore        = "ingest.log-store"
	GroupIngestTenants   = "ingest.tenants"
	GroupLedger          = "ledger.quota"
	GroupLedgerTenants   = "ledger.tenants"
	GroupLedgerOutcomes  = "ledger.outcomes"
	GroupGrouping        = "grouping.clusters"
	GroupGroupingTenants = "grouping.tenants"
	GroupTenantsKeys     = "tenants.keys"
	GroupTenantsErasures = "tenants.erasures"
	GroupTenantsLedger   = "tenants.ledger"
	GroupTenantsGrouping = "tenants.grouping"
	GroupTenantsAlerts   = "tenants.alerts"
)

// A Group is a consumer group: the replicas of one module that share
// one topic's work.
type Group struct{ Name, Module, Topic string }

// Groups lists every consumer group of Weir.
func Groups() []Group {
	return []Group{
		{GroupLogStore, "ingest", TopicLogs},
		{GroupIngestTenants, "ingest", TopicTenants},
		{GroupLedger, "ledger", TopicLogs},
		{GroupLedgerTenants, "ledger", TopicTenants},
		{GroupLedgerOutcomes, "ledger", TopicOutcomes},
		{GroupGrouping, "grouping", TopicLogs},
		{GroupGroupingTenants, "grouping", TopicTenants},
		{GroupTenantsKeys, "tenants", TopicIngest},
		{GroupTenantsErasures, "tenants", TopicErasures},
		{GroupTenantsLedger, "tenants", TopicLedger},
		{GroupTenantsGrouping, "tenants", TopicGrouping},
		{GroupTenantsAlerts, "tenants", TopicAlerts},
	}
}

// DefaultLogPartitions is the default number of partitions of
// weir.logs.v1. It limits the consumers of one group, and is generous:
// adding partitions later moves keys.
const DefaultLogPartitions = 12

// MaxRecordBytes is the largest record of weir.logs.v1, enough for the
// largest legal entry; ingest's parts are much smaller.
const MaxRecordBytes = 2 << 20

// factsRetention is how long facts are kept from which nothing is
// rebuilt: longer than any consumer's outage.
const factsRetention = 30 * 24 * time.Hour

// segmentTime is how long a compacted topic writes one segment, and so
// how long a deleted record may stay in an older one.
const segmentTime = 24 * time.Hour

// A Topic is one topic as it must exist on the broker.
type Topic struct {
	Name       string
	Owner      string   // the module that creates it, and its only writer unless it is gathered
	Gathered   bool     // every module writes it, through one package of shared (see decision 2)
	Readers    []string // modules
	Partitions int
	Config     map[string]string // by the broker's setting names
	Keeps      string            // its bound, in words
}

// Descriptions of the bounds of topics.
const (
	thirtyDays    = "30 days"
	everyDecision = "what people decide about organizations, projects and keys, until those are deleted: who rebuilds itself begins with it. " +
		"WEIR_CHANGES_PER_MINUTE and WEIR_MAX_… bound it; none of it comes from traffic"
)

// Topics lists every topic of Weir. logPartitions 0 means DefaultLogPartitions.
//
// Only weir.logs.v1 has several partitions. Every replica reads the
// whole state topics, so partitions would only add disorder, and the
// marker on weir.accounts.v1 needs their total order.
func Topics(logPartitions int, logRetention time.Duration) []Topic {
	compacted := map[string]string{"cleanup.policy": "compact", "segment.ms": strconv.FormatInt(segmentTime.Milliseconds(), 10)}
	fleeting := map[string]string{"cleanup.policy": "delete", "retention.ms": retentionMillis(factsRetention)}
	logs := map[string]string{
		"cleanup.policy":    "delete",
		"retention.ms":      retentionMillis(logRetention),
		"max.message.bytes": strconv.Itoa(MaxRecordBytes),
	}
	return []Topic{
		{Name: TopicLogs, Owner: "ingest", Readers: []string{"ingest", "ledger", "grouping"}, Partitions: cmp.Or(logPartitions, DefaultLogPartitions),
			Config: logs, Keeps: "WEIR_LOG_RETENTION"},
		{Name: TopicCredentials, Owner: "tenants", Readers: Modules(), Partitions: 1, Config: compacted,
			Keeps: "a state of each credential that tenants has a row of, and of each organization and project whose deletion was cancelled or has not finished"},
		{Name: TopicAccounts, Owner: "ledger", Readers: []string{"ingest", "tenants", "ledger"}, Partitions: 1, Config: compacted,
			Keeps: "a state of each organization, and the marker"},
		{Name: TopicTenants, Owner: "tenants", Readers: Modules(), Partitions: 1, Config: compacted, Keeps: everyDecision},
		{Name: TopicLedger, Owner: "ledger", Readers: []string{"tenants", "ledger"}, Partitions: 1, Config: fleeting, Keeps: thirtyDays},
		{Name: TopicGrouping, Owner: "grouping", Readers: []string{"tenants", "grouping"}, Partitions: 1, Config: fleeting, Keeps: thirtyDays},
		{Name: TopicIngest, Owner: "ingest", Gathered: true, Readers: []string{"tenants"}, Partitions: 1, Config: fleeting, Keeps: thirtyDays},
		{Name: TopicOutcomes, Owner: "ingest", Readers: []string{"ledger"}, Partitions: 1, Config: fleeting, Keeps: thirtyDays},
		{Name: TopicAlerts, Owner: "ingest", Readers: []string{"tenants", "ingest"}, Partitions: 1, Config: fleeting, Keeps: thirtyDays},
		{Name: TopicRules, Owner: "ingest", Readers: []string{"ingest"}, Partitions: 1, Config: compacted,
			Keeps: "the rules of each project that has had some, and the marker"},
		{Name: TopicErasures, Owner: "tenants", Gathered: true, Readers: []string{"tenants"}, Partitions: 1, Config: fleeting, Keeps: thirtyDays},
	}
}

// Modules returns the modules with topics.
func Modules() []string { return []string{"ingest", "ledger", "grouping", "tenants"} }

// Writers returns the modules that write the topic.
func (t Topic) Writers() []string {
	if t.Gathered {
		return Modules()
	}
	return []string{t.Owner}
}

// OwnedBy returns the topics that a module creates.
func OwnedBy(module string, topics []Topic) []Topic {
	return slices.DeleteFunc(slices.Clone(topics), func(topic Topic) bool { return topic.Owner != module })
}

// retentionMillis returns a retention in the broker's form; 0
// keeps records forever.
func retentionMillis(d time.Duration) string {
	if d <= 0 {
		return "-1"
	}
	return strconv.FormatInt(d.Milliseconds(), 10)
}
