package app

import (
	"errors"
	"fmt"
	"time"

	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/process"
	"github.com/weirlog/weir/shared/telemetry"
)

// Config is what ingest needs to run. Sizes are bytes.
type Config struct {
	httpapi.ServerConfig `embed:""`

	Telemetry telemetry.Config `embed:""`

	Limits identity.Limits `embed:""`

	Brokers     []string       `help:"Kafka brokers, host:port." env:"WEIR_BROKERS"`
	DatabaseURL httpapi.Secret `help:"Postgres URL of the log store's database." env:"WEIR_DATABASE_URL" default:""`

	BrokerAccess sharedbus.Access `embed:"" prefix:"brokers-"`

	Strict           bool          `help:"Refuse a whole request for one invalid entry, unless it prefers handling=lenient." env:"WEIR_INGEST_STRICT"`
	MaxBodyBytes     int           `help:"Largest body after decompression, bytes." env:"WEIR_INGEST_MAX_BODY_BYTES" default:"134217728"`
	InFlightBytes    int64         `help:"Most bytes of bodies in memory at once; beyond it requests get 429 overloaded." env:"WEIR_INGEST_IN_FLIGHT_BYTES" default:"536870912"`
	ClientsPerMinute int           `help:"Requests without a valid key per minute and client address." env:"WEIR_INGEST_CLIENTS_PER_MINUTE" default:"300"`
	IdempotencyKeys  int           `help:"How many idempotency keys of the last 24 h are remembered in memory." env:"WEIR_INGEST_IDEMPOTENCY_KEYS" default:"100000"`
	PublishTimeout   time.Duration `help:"How long a request waits for the brokers before it is answered 500." env:"WEIR_INGEST_PUBLISH_TIMEOUT" default:"10s"`
	LogPartitions    int           `help:"Partitions of weir.logs.v1 where it does not exist yet." env:"WEIR_LOG_PARTITIONS" default:"12"`
	LogRetention     time.Duration `help:"How long weir.logs.v1 keeps records where it does not exist yet. 0: for ever." env:"WEIR_LOG_RETENTION" default:"168h"`
	ProjectSpread    int           `help:"Over how many keys, hence partitions, the records of one project are spread." env:"WEIR_INGEST_PROJECT_SPREAD" default:"8"`

	Searches    int           `help:"Searches at work at once; one organization has at most half of them, and the others take turns." env:"WEIR_INGEST_SEARCHES" default:"4"`
	SearchTime  time.Duration `help:"How long one page is searched for; then it ends with what was found, and a cursor." env:"WEIR_INGEST_SEARCH_TIME" default:"2s"`
	SearchBytes int           `help:"How much one page looks through, bytes of entries and of the headers of blocks; then the same." env:"WEIR_INGEST_SEARCH_BYTES" default:"268435456"`
	AnswerBytes int64         `help:"Most bytes of search results in memory at once, shared among organizations; beyond its share one gets 429 overloaded." env:"WEIR_INGEST_ANSWER_BYTES" default:"67108864"`

	StateDir string `help:"Directory in which what other services published is kept, for a fast start. Empty: all of it is read at each start." env:"WEIR_STATE_DIR"`

	Clock func() time.Time `kong:"-"` // the system's where nil
}

// Defaults where the configuration has zero.
const (
	defaultMaxBody     = 128 << 20
	defaultInFlight    = 512 << 20
	defaultClients     = 300
	defaultIdempotency = 100_000
	defaultTimeout     = 10 * time.Second
	defaultSpread      = 8
	defaultSearches    = 4
	defaultAnswers     = 64 << 20
	minAnswers         = 16 << 20
)

// Validate joins what is wrong with the configuration.
func (c Config) Validate() error {
	errs := []error{process.CheckBrokers(c.Brokers), c.BrokerAccess.Validate(), process.CheckDatabaseURL(c.DatabaseURL.Reveal())}
	if c.MaxBodyBytes < 0 || c.InFlightBytes < 0 || c.ClientsPerMinute < 0 || c.IdempotencyKeys < 0 || c.PublishTimeout < 0 || c.ProjectSpread < 0 ||
		c.LogPartitions < 0 || c.LogRetention < 0 || c.Searches < 0 || c.SearchTime < 0 || c.SearchBytes < 0 || c.AnswerBytes < 0 {
		errs = append(errs, errors.New("WEIR_INGEST_* can't be negative"))
	}
	if c.MaxBodyBytes > 0 && c.InFlightBytes > 0 && c.InFlightBytes < 2*int64(c.MaxBodyBytes) {
		errs = append(errs, fmt.Errorf("WEIR_INGEST_IN_FLIGHT_BYTES is %d: it has to hold a body of WEIR_INGEST_MAX_BODY_BYTES=%d twice",
			c.InFlightBytes, c.MaxBodyBytes))
	}
	if c.AnswerBytes > 0 && c.AnswerBytes < minAnswers {
		errs = append(errs, fmt.Errorf("WEIR_INGEST_ANSWER_BYTES is %d: the share of one organization has to hold two large entries; use %d or more", c.AnswerBytes, minAnswers))
	}
	return errors.Join(append(errs, c.ServerConfig.Validate(), c.Limits.Validate())...)
}
