package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/weirlog/weir/ingest/internal/admission"
	"github.com/weirlog/weir/ingest/internal/http"
	"github.com/weirlog/weir/ingest/internal/intake"
	"github.com/weirlog/weir/shared/fairshare"
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

	Strict                  bool          `help:"Refuse a whole request for one invalid entry, unless it prefers handling=lenient." env:"WEIR_INGEST_STRICT"`
	MaxBodyBytes            int           `help:"Largest body after decompression, bytes." env:"WEIR_INGEST_MAX_BODY_BYTES" default:"134217728"`
	InFlightBytes           int64         `help:"Most bytes of bodies in memory at once, decompression included." env:"WEIR_INGEST_IN_FLIGHT_BYTES" default:"226492416"`
	Requests                int           `help:"Requests under way at once for one organization." env:"WEIR_INGEST_REQUESTS" default:"256"`
	LargeBodies             int           `help:"Bodies of more than 1 MiB under way at once for one organization." env:"WEIR_INGEST_LARGE_BODIES" default:"8"`
	LargeBodyBytesPerSecond int64         `help:"Bytes of bodies of more than 1 MiB, after decompression, that are read of one organization in a second while others send, too." env:"WEIR_INGEST_LARGE_BODY_BYTES_PER_SECOND" default:"16777216"`
	BodyBytesPerSecond      int64         `help:"Bytes of other bodies that are read of one organization in a second while others send, too; an entry counts as 256 more, an error as 2 KiB more. 0: 24 MiB for each processor." env:"WEIR_INGEST_BODY_BYTES_PER_SECOND" default:"0"`
	ClientRequests          int           `help:"Requests without a key in the header under way at once for one client address." env:"WEIR_INGEST_CLIENT_REQUESTS" default:"32"`
	WastedBytes             int64         `help:"Bytes that an organization may send in vain, such as in invalid entries, before it has to wait; a client address without a key: an eighth." env:"WEIR_INGEST_WASTED_BYTES" default:"268435456"`
	WastedPerSecond         int64         `help:"How many of these bytes come back in a second." env:"WEIR_INGEST_WASTED_BYTES_PER_SECOND" default:"4194304"`
	ClientsPerMinute        int           `help:"Requests without a valid key per minute and client address." env:"WEIR_INGEST_CLIENTS_PER_MINUTE" default:"300"`
	IdempotencyKeys         int           `help:"How many idempotency keys of the last 24 h are remembered in memory; beyond that, the organization with the most loses its oldest." env:"WEIR_INGEST_IDEMPOTENCY_KEYS" default:"100000"`
	PublishTimeout          time.Duration `help:"How long a request waits for the brokers before it is answered 500; one second more for each 4 MiB of entries." env:"WEIR_INGEST_PUBLISH_TIMEOUT" default:"10s"`
	LogPartitions           int           `help:"Partitions of weir.logs.v1 where it does not exist yet." env:"WEIR_LOG_PARTITIONS" default:"12"`
	LogRetention            time.Duration `help:"How long weir.logs.v1 keeps records where it does not exist yet. 0: without limit." env:"WEIR_LOG_RETENTION" default:"168h"`
	ProjectSpread           int           `help:"Over how many keys, hence partitions, the records of one project are spread." env:"WEIR_INGEST_PROJECT_SPREAD" default:"8"`

	OutcomesInterval time.Duration `help:"How often it is published what became of requests. A crash loses what came since." env:"WEIR_INGEST_OUTCOMES_INTERVAL" default:"30s"`

	Searches    int           `help:"Searches at work at once; one organization has at most half of them, and the others take turns. 0: one for each processor, 2 to 4." env:"WEIR_INGEST_SEARCHES" default:"0"`
	SearchTime  time.Duration `help:"How long one page is searched for; then it ends with what was found, and a cursor." env:"WEIR_INGEST_SEARCH_TIME" default:"2s"`
	SearchBytes int           `help:"How much one page looks through, bytes of entries and of the headers of blocks; then the same." env:"WEIR_INGEST_SEARCH_BYTES" default:"268435456"`
	AnswerBytes int64         `help:"Most bytes of search results in memory at once, shared among organizations; beyond its share one gets 429 overloaded." env:"WEIR_INGEST_ANSWER_BYTES" default:"67108864"`
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
)

// searches is how many searches run at once, so that one organization
// has half of the processors.
func (c Config) searches() int {
	return cmp.Or(c.Searches, min(max(minSearches, runtime.GOMAXPROCS(0)), maxSearches))
}

// Validate returns all faults of the configuration.
func (c Config) Validate() error {
	errs := []error{c.Config.Validate(), c.checkMemory(), c.checkDrain()}
	for name, value := range map[string]int64{
		"WEIR_INGEST_MAX_BODY_BYTES": int64(c.MaxBodyBytes), "WEIR_INGEST_IN_FLIGHT_BYTES": c.InFlightBytes, "WEIR_INGEST_REQUESTS": int64(c.Requests),
		"WEIR_INGEST_LARGE_BODIES": int64(c.LargeBodies), "WEIR_INGEST_LARGE_BODY_BYTES_PER_SECOND": c.LargeBodyBytesPerSecond,
		"WEIR_INGEST_BODY_BYTES_PER_SECOND": c.BodyBytesPerSecond, "WEIR_INGEST_CLIENT_REQUESTS": int64(c.ClientRequests),
		"WEIR_INGEST_WASTED_BYTES": c.WastedBytes, "WEIR_INGEST_WASTED_BYTES_PER_SECOND": c.WastedPerSecond,
		"WEIR_INGEST_CLIENTS_PER_MINUTE": int64(c.ClientsPerMinute), "WEIR_INGEST_IDEMPOTENCY_KEYS": int64(c.IdempotencyKeys),
		"WEIR_INGEST_PUBLISH_TIMEOUT": int64(c.PublishTimeout), "WEIR_INGEST_PROJECT_SPREAD": int64(c.ProjectSpread),
		"WEIR_LOG_PARTITIONS": int64(c.LogPartitions), "WEIR_LOG_RETENTION": int64(c.LogRetention),
		"WEIR_INGEST_SEARCHES": int64(c.Searches), "WEIR_INGEST_SEARCH_TIME": int64(c.SearchTime), "WEIR_INGEST_SEARCH_BYTES": int64(c.SearchBytes),
		"WEIR_INGEST_ANSWER_BYTES": c.AnswerBytes, "WEIR_INGEST_OUTCOMES_INTERVAL": int64(c.OutcomesInterval),
	} {
		if value < 0 {
			errs = append(errs, fmt.Errorf("%s is %d: it can't be negative", name, value))
		}
	}
	if c.AnswerBytes > 0 && c.AnswerBytes < minAnswers {
		errs = append(errs, fmt.Errorf("WEIR_INGEST_ANSWER_BYTES is %d: the share of one organization has to hold two large entries; use %d or more",
			c.AnswerBytes, minAnswers))
	}
	return errors.Join(errs...)
}

// checkMemory reports whether the largest body fits into the memory for bodies.
func (c Config) checkMemory() error {
	inFlight, maxBody := c.inFlight(), int64(c.maxBody())
	if inFlight < minInFlight {
		return fmt.Errorf("WEIR_INGEST_IN_FLIGHT_BYTES is %d: at least %d are needed", inFlight, minInFlight)
	}
	if fits := http.LargestBody(keyedShare(inFlight)); maxBody > fits {
		return fmt.Errorf("WEIR_INGEST_IN_FLIGHT_BYTES is %d: a body of WEIR_INGEST_MAX_BODY_BYTES=%d does not fit, at most one of %d does", inFlight, maxBody, fits)
	}
	return nil
}

// Slack of a request that is published.
const (
	publishSlack = 2 * time.Second // beyond the publisher's attempts: it knows more about the outcome
	answerSlack  = time.Second     // for its answer
)

// checkDrain reports whether a stop waits for the answer of the
// request that takes longest.
func (c Config) checkDrain() error {
	drain, longest := cmp.Or(c.Drain, httpapi.DefaultDrain), intake.PublishTimeout(c.publishTimeout(), int64(c.maxBody()))+answerSlack
	if drain < longest {
		return fmt.Errorf("WEIR_DRAIN is %s: with WEIR_INGEST_MAX_BODY_BYTES=%d and WEIR_INGEST_PUBLISH_TIMEOUT=%s a request takes %s; a stop would cut it off",
			drain, c.maxBody(), c.timeout(), longest)
	}
	return nil
}

// publishTimeout is how long a small request waits for the brokers.
func (c Config) publishTimeout() time.Duration { return c.timeout() + publishSlack }

func (c Config) timeout() time.Duration { return cmp.Or(c.PublishTimeout, defaultTimeout) }

func (c Config) inFlight() int64 { return cmp.Or(c.InFlightBytes, defaultInFlight) }
func (c Config) maxBody() int    { return cmp.Or(c.MaxBodyBytes, defaultMaxBody) }

// Prune removes expired rows at once; Run does so continuously.
func (a *App) Prune(ctx context.Context) error { return a.store.pruner.RunOnce(ctx) }

// Bounds returns the bounds of all tables of the schema.
func (a *App) Bounds() []prune.Bound { return a.store.pruner.Bounds() }

// Bodies read to find the key in them have a share of the
// memory, and of the bytes that may be wasted: those with a key
// in the header lose neither to them.
const (
	anonymousShare   = 8
	anonymousMaxBody = 8 << 20
)

// minInFlight leaves each share of the memory a few bodies.
const minInFlight = 16 << 20

// keyedShare is the memory for bodies of requests with a key in the header.
func keyedShare(inFlight int64) int64 { return inFlight - inFlight/anonymousShare }

// bodies are those of requests with a key in the header, and of those without.
func (c Config) bodies(clock func() time.Time) (keyed, anonymous *http.Bodies) {
	large := cmp.Or(c.LargeBodies, defaultLarge)
	inFlight, throttle := c.inFlight(), c.throttle()
	keyed = http.NewBodies(http.BodyLimits{
		Bytes: keyedShare(inFlight), Max: c.maxBody(), Requests: cmp.Or(c.Requests, defaultRequests), LargeBodies: large,
		Throttle: throttle,
	}, clock)
	fits := int(http.LargestBody(inFlight / anonymousShare))
	anonymous = http.NewBodies(http.BodyLimits{
		Bytes: inFlight / anonymousShare, Max: min(c.maxBody(), anonymousMaxBody, fits),
		Requests: cmp.Or(c.ClientRequests, defaultAnonymous), LargeBodies: large, Throttle: throttle,
	}, clock)
	return keyed, anonymous
}

// throttledBodies is how many bodies of a throttled holder are under
// way: one is read while another is published.
const throttledBodies = 2

// ordinaryRate is what one organization may send in ordinary bodies for each
// processor: about half of what one processor takes from the request to the
// views, 26,000 entries of 480 bytes of which a tenth are errors.
const ordinaryRate = 24 << 20

// throttle is how fast an organization's bodies come in while others send, too.
func (c Config) throttle() admission.ThrottleLimit {
	return admission.ThrottleLimit{
		PerSecond: cmp.Or(c.LargeBodyBytesPerSecond, defaultLargeRate), Bodies: throttledBodies,
		Ordinary: cmp.Or(c.BodyBytesPerSecond, int64(runtime.GOMAXPROCS(0))*ordinaryRate),
	}
}

// waste bounds the bytes an organization may send without effect.
func (c Config) waste() fairshare.Rate {
	return fairshare.Rate{Burst: cmp.Or(c.WastedBytes, defaultWasted), PerSecond: cmp.Or(c.WastedPerSecond, defaultWastedBack)}
}

// clients limits requests without a valid key.
func (c Config) clients() *admission.Clients {
	clients, waste := admission.NewClients(cmp.Or(c.ClientsPerMinute, defaultClients)), c.waste()
	clients.LimitWaste(fairshare.Rate{Burst: max(waste.Burst/anonymousShare, 1), PerSecond: max(waste.PerSecond/anonymousShare, 1)})
	return clients
}
