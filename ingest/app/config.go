package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/weirlog/weir/ingest/internal/intake"
	"github.com/weirlog/weir/ingest/internal/objects"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/shared/service"
)

// Config is what ingest needs to run. Sizes are bytes.
type Config struct {
	service.Config `embed:""`

	Logs service.LogsConfig `embed:""`

	// OthersIntact is for a process that has the consumers of other modules
	// as well: see LogsIntact of each. nil: it has none.
	OthersIntact func() error `kong:"-"`

	Strict bool `help:"Refuse a whole request for one invalid entry, unless it prefers handling=lenient." env:"WEIR_INGEST_STRICT"`

	Bodies BodyConfig `embed:""`

	IdempotencyKeys int `help:"How many idempotency keys of the last 24 h are remembered in memory; beyond that, the organization with the most loses its oldest." env:"WEIR_INGEST_IDEMPOTENCY_KEYS" default:"100000"`

	Publish PublishConfig `embed:""`

	OutcomesInterval time.Duration `help:"How often it is published what became of requests. A crash loses what came since." env:"WEIR_INGEST_OUTCOMES_INTERVAL" default:"30s"`

	Search SearchConfig `embed:""`

	Tail TailConfig `embed:""`

	Archive ArchiveConfig `embed:""`
	Saved   SavedConfig   `embed:""`

	History HistoryConfig `embed:""`
}

// PublishConfig is how requests get into the log.
type PublishConfig struct {
	PublishTimeout time.Duration `help:"How long a request waits for the brokers before it is answered 500; one second more for each 4 MiB of entries." env:"WEIR_INGEST_PUBLISH_TIMEOUT" default:"10s"`
	LogPartitions  int           `help:"Partitions of weir.logs.v1 where it does not exist yet." env:"WEIR_LOG_PARTITIONS" default:"12"`
	LogRetention   time.Duration `help:"How long weir.logs.v1 keeps records where it does not exist yet. 0: without limit." env:"WEIR_LOG_RETENTION" default:"168h"`
	ProjectSpread  int           `help:"Over how many keys, hence partitions, the records of one project are spread." env:"WEIR_INGEST_PROJECT_SPREAD" default:"8"`
}

// Slack of a request that is published.
const (
	publishSlack = 2 * time.Second // beyond the publisher's attempts: it knows more about the outcome
	answerSlack  = time.Second     // for its answer
)

// whole is how long a small request waits for the brokers.
func (c PublishConfig) whole() time.Duration { return c.timeout() + publishSlack }

func (c PublishConfig) timeout() time.Duration { return cmp.Or(c.PublishTimeout, defaultTimeout) }

// SearchConfig bounds searches.
type SearchConfig struct {
	Searches    int           `help:"Searches at work at once; one organization has at most half of them, and the others take turns. 0: one for each processor, 2 to 4." env:"WEIR_INGEST_SEARCHES" default:"0"`
	SearchTime  time.Duration `help:"How long one page is searched for; then it ends with what was found, and a cursor." env:"WEIR_INGEST_SEARCH_TIME" default:"2s"`
	SearchBytes int           `help:"How much one page looks through, bytes of entries and of the headers of blocks; then the same." env:"WEIR_INGEST_SEARCH_BYTES" default:"268435456"`
	AnswerBytes int64         `help:"Most bytes of search results in memory at once, shared among organizations; beyond its share one gets 429 overloaded." env:"WEIR_INGEST_ANSWER_BYTES" default:"67108864"`
}

// TailConfig bounds tails.
type TailConfig struct {
	Tails       int           `help:"Tails at once; one organization has at most an eighth of them." env:"WEIR_INGEST_TAILS" default:"128"`
	TailPercent int           `help:"Percent of the time of all processors in which entries are compared for tails and sent to them; one organization has at most half of it, and an equal part beside others. What does not fit is skipped." env:"WEIR_INGEST_TAIL_PERCENT" default:"20"`
	TailTime    time.Duration `help:"How long a tail lasts; then its client comes back." env:"WEIR_INGEST_TAIL_TIME" default:"1h"`
}

// ArchiveConfig is where the texts of past days are kept outside of the database.
type ArchiveConfig struct {
	ArchiveURL   string        `help:"Where the texts of past days are moved: file:///a/folder, which all replicas see, or s3://bucket/prefix?endpoint=https://host&region=name with the credentials of AWS_ACCESS_KEY_ID and the like. Empty: they stay in the database." env:"WEIR_INGEST_ARCHIVE_URL"`
	ArchiveAfter time.Duration `help:"How long after the end of a day its texts are moved." env:"WEIR_INGEST_ARCHIVE_AFTER" default:"24h"`
}

// open opens the archive; nil: there is none.
func (c ArchiveConfig) open() (objects.Store, error) {
	if c.ArchiveURL == "" {
		return nil, nil //nolint:nilnil // there need not be one
	}
	store, err := objects.Open(c.ArchiveURL)
	if err != nil {
		return nil, fmt.Errorf("WEIR_INGEST_ARCHIVE_URL: %w", err)
	}
	return store, nil
}

// SavedConfig bounds saved searches and alerts.
type SavedConfig struct {
	SavedSearches int `help:"Saved searches that a project shares at most, and that a member has alone." env:"WEIR_MAX_SAVED_SEARCHES" default:"100"`
	Alerts        int `help:"Alerts on saved searches that an organization has at most." env:"WEIR_MAX_ALERTS" default:"50"`

	AlertInterval time.Duration `kong:"-"` // between looks for due alerts; 0: the usual one
}

// work is how much of a second tails may take, of all processors.
func (c TailConfig) work() time.Duration {
	return time.Duration(cmp.Or(c.TailPercent, defaultTailPercent)*runtime.GOMAXPROCS(0)) * time.Second / 100
}

// concurrency is how many searches run at once, so that one organization
// has half of the processors.
func (c SearchConfig) concurrency() int {
	return cmp.Or(c.Searches, min(max(minSearches, runtime.GOMAXPROCS(0)), maxSearches))
}

// Defaults where the configuration has zero.
const (
	defaultMaxBody     = 128 << 20
	defaultInFlight    = 216 << 20
	defaultRequests    = 256
	defaultLarge       = 8
	defaultLargeRate   = 16 << 20
	defaultAnonymous   = 32
	defaultWasted      = 256 << 20
	defaultWastedBack  = 4 << 20
	defaultClients     = 300
	defaultIdempotency = 100_000
	defaultTimeout     = 10 * time.Second
	defaultSpread      = 8
	defaultOutcomes    = 30 * time.Second
	minSearches        = 2
	maxSearches        = 4
	defaultAnswers     = 64 << 20
	minAnswers         = 16 << 20
	defaultTails       = 128
	defaultTailPercent = 20
	defaultTailTime    = time.Hour

	defaultArchiveAfter  = 24 * time.Hour
	defaultSavedSearches = 100
	defaultAlerts        = 50
)

// Validate returns all faults of the configuration.
func (c Config) Validate() error {
	errs := []error{c.Config.Validate(), c.Bodies.checkMemory(), c.checkDrain(), c.History.Validate()}
	bodies, publish, search := c.Bodies, c.Publish, c.Search
	for name, value := range map[string]int64{
		"WEIR_INGEST_MAX_BODY_BYTES": int64(bodies.MaxBodyBytes), "WEIR_INGEST_IN_FLIGHT_BYTES": bodies.InFlightBytes,
		"WEIR_INGEST_REQUESTS": int64(bodies.Requests), "WEIR_INGEST_LARGE_BODIES": int64(bodies.LargeBodies),
		"WEIR_INGEST_LARGE_BODY_BYTES_PER_SECOND": bodies.LargeBodyBytesPerSecond, "WEIR_INGEST_BODY_BYTES_PER_SECOND": bodies.BodyBytesPerSecond,
		"WEIR_INGEST_CLIENT_REQUESTS": int64(bodies.ClientRequests), "WEIR_INGEST_CLIENTS_PER_MINUTE": int64(bodies.ClientsPerMinute),
		"WEIR_INGEST_WASTED_BYTES": bodies.WastedBytes, "WEIR_INGEST_WASTED_BYTES_PER_SECOND": bodies.WastedPerSecond,
		"WEIR_INGEST_IDEMPOTENCY_KEYS": int64(c.IdempotencyKeys), "WEIR_INGEST_OUTCOMES_INTERVAL": int64(c.OutcomesInterval),
		"WEIR_INGEST_PUBLISH_TIMEOUT": int64(publish.PublishTimeout), "WEIR_INGEST_PROJECT_SPREAD": int64(publish.ProjectSpread),
		"WEIR_LOG_PARTITIONS": int64(publish.LogPartitions), "WEIR_LOG_RETENTION": int64(publish.LogRetention),
		"WEIR_INGEST_SEARCHES": int64(search.Searches), "WEIR_INGEST_SEARCH_TIME": int64(search.SearchTime),
		"WEIR_INGEST_SEARCH_BYTES": int64(search.SearchBytes), "WEIR_INGEST_ANSWER_BYTES": search.AnswerBytes,
		"WEIR_INGEST_TAILS": int64(c.Tail.Tails), "WEIR_INGEST_TAIL_PERCENT": int64(c.Tail.TailPercent), "WEIR_INGEST_TAIL_TIME": int64(c.Tail.TailTime),
		"WEIR_INGEST_ARCHIVE_AFTER": int64(c.Archive.ArchiveAfter),
		"WEIR_MAX_SAVED_SEARCHES":   int64(c.Saved.SavedSearches), "WEIR_MAX_ALERTS": int64(c.Saved.Alerts),
	} {
		if value < 0 {
			errs = append(errs, fmt.Errorf("%s is %d: it can't be negative", name, value))
		}
	}
	if search.AnswerBytes > 0 && search.AnswerBytes < minAnswers {
		errs = append(errs, fmt.Errorf("WEIR_INGEST_ANSWER_BYTES is %d: the share of one organization has to hold two large entries; use %d or more",
			search.AnswerBytes, minAnswers))
	}
	if c.Tail.TailPercent > 100 {
		errs = append(errs, fmt.Errorf("WEIR_INGEST_TAIL_PERCENT is %d: there are 100 in all", c.Tail.TailPercent))
	}
	if c.Tail.TailTime >= httpapi.LongestEvents {
		errs = append(errs, fmt.Errorf("WEIR_INGEST_TAIL_TIME is %s: a tail lasts less than %s", c.Tail.TailTime, httpapi.LongestEvents))
	}
	return errors.Join(errs...)
}

// checkDrain reports whether a stop waits for the answer of the
// request that takes longest.
func (c Config) checkDrain() error {
	drain, longest := cmp.Or(c.Drain, httpapi.DefaultDrain), intake.PublishTimeout(c.Publish.whole(), int64(c.Bodies.largest()))+answerSlack
	if drain < longest {
		return fmt.Errorf("WEIR_DRAIN is %s: with WEIR_INGEST_MAX_BODY_BYTES=%d and WEIR_INGEST_PUBLISH_TIMEOUT=%s a request takes %s; a stop would cut it off",
			drain, c.Bodies.largest(), c.Publish.timeout(), longest)
	}
	return nil
}

// Prune removes expired rows at once; Run does so continuously.
func (a *App) Prune(ctx context.Context) error { return a.store.pruner.RunOnce(ctx) }

// Bounds returns the bounds of all tables of the schema.
func (a *App) Bounds() []prune.Bound { return a.store.pruner.Bounds() }
