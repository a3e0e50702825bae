package weir

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Options say where and how a [Client] sends. What is empty has the default
// that its comment names.
type Options struct {
	BaseURL string // https://host/v1; default WEIR_BASE_URL
	APIKey  Secret // default WEIR_API_KEY
	CAFile  string // certificates in PEM to trust beside the system's; default WEIR_CA_FILE

	Environment string // of entries that name none; without it, that of the API key
	ProjectID   string // project_id of entries that name none

	Limits Limits
	Spool  Spool

	// OnDrop learns of dropped entries, within about a second, and OnError of
	// trouble: when sending begins to fail, and when it stops for good.
	// Without OnError, trouble is written to standard error. Both are called
	// in the background, one call at a time, and may log.
	OnDrop  func(Drop)
	OnError func(error)
}

// Limits bound what a client holds and how it sends.
type Limits struct {
	QueueBytes   int           // of entries that wait; default 16 MiB
	QueueEntries int           // default 100,000
	BatchBytes   int           // of entries in a request; default 512 KiB
	BatchEntries int           // default 1,000, which is the most
	BatchDelay   time.Duration // the longest an entry waits for others; default 1 s
	Request      time.Duration // the longest one attempt takes; default 30 s
	GiveUpAfter  time.Duration // a batch is dropped after that long; default 5 min, with a spool 23 h, which is the most
}

// Spool keeps batches on disk until they are accepted.
type Spool struct {
	Dir   string // of one process at a time; without it, batches are in memory
	Bytes int64  // default 256 MiB
}

// A Secret is text that prints as "[redacted]".
type Secret string

const redacted = "[redacted]"

func (Secret) String() string               { return redacted }
func (Secret) GoString() string             { return redacted }
func (Secret) LogValue() slog.Value         { return slog.StringValue(redacted) }
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

const (
	maxBatchEntries = 1000      // of a request, as Weir has it
	maxEntry        = 512 << 10 // bytes, as Weir has it
	keyPrefix       = "weir_"
	// Weir knows an idempotency key for 24 hours.
	maxGiveUpAfter = 23 * time.Hour
)

// withDefaults fills what is empty.
func (o Options) withDefaults() Options {
	o.BaseURL = strings.TrimRight(cmp.Or(o.BaseURL, os.Getenv("WEIR_BASE_URL")), "/")
	o.APIKey = Secret(strings.TrimSpace(cmp.Or(string(o.APIKey), os.Getenv("WEIR_API_KEY"))))
	o.CAFile = cmp.Or(o.CAFile, os.Getenv("WEIR_CA_FILE"))
	l := &o.Limits
	l.QueueBytes = cmp.Or(max(l.QueueBytes, 0), 16<<20)
	l.QueueEntries = cmp.Or(max(l.QueueEntries, 0), 100_000)
	l.BatchBytes = cmp.Or(max(l.BatchBytes, 0), 512<<10)
	l.BatchEntries = min(cmp.Or(max(l.BatchEntries, 0), maxBatchEntries), maxBatchEntries)
	l.BatchDelay = cmp.Or(max(l.BatchDelay, 0), time.Second)
	l.Request = cmp.Or(max(l.Request, 0), 30*time.Second)
	giveUp := 5 * time.Minute
	if o.Spool.Dir != "" {
		giveUp = maxGiveUpAfter
	}
	l.GiveUpAfter = min(cmp.Or(max(l.GiveUpAfter, 0), giveUp), maxGiveUpAfter)
	o.Spool.Bytes = cmp.Or(max(o.Spool.Bytes, 0), 256<<20)
	if o.OnError == nil {
		o.OnError = func(err error) { fmt.Fprintln(os.Stderr, err) }
	}
	return o
}

// check says what is wrong, without the key itself.
func (o Options) check() error {
	if strings.HasPrefix(o.BaseURL, keyPrefix) {
		return errors.New("weir: the base URL is an API key: WEIR_BASE_URL and WEIR_API_KEY are mixed up")
	}
	u, err := url.Parse(o.BaseURL)
	switch {
	case o.BaseURL == "":
		return errors.New("weir: there is no base URL: set Options.BaseURL or WEIR_BASE_URL to https://HOST/v1")
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "":
		return fmt.Errorf("weir: the base URL (WEIR_BASE_URL) of %d characters is not of the form https://HOST/v1", len(o.BaseURL))
	case u.Scheme != "https":
		return fmt.Errorf("weir: the base URL %q (WEIR_BASE_URL) begins with %s:, which would show the API key: begin it with https:", o.BaseURL, u.Scheme)
	case o.APIKey == "":
		return errors.New("weir: there is no API key: set Options.APIKey or WEIR_API_KEY to a key of the project")
	case !strings.HasPrefix(string(o.APIKey), keyPrefix) || strings.ContainsFunc(string(o.APIKey), func(r rune) bool { return r <= ' ' || r > '~' }):
		return fmt.Errorf("weir: the API key (WEIR_API_KEY) of %d characters is not one of Weir, which begin with %q: copy it whole", len(o.APIKey), keyPrefix)
	}
	return nil
}

// transport returns one that trusts CAFile, too.
func (o Options) transport() (*http.Transport, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: 90 * time.Second}
	if o.CAFile == "" {
		return transport, nil
	}
	pem, err := os.ReadFile(o.CAFile)
	if err != nil {
		return nil, fmt.Errorf("weir: cannot read the certificates that Options.CAFile or WEIR_CA_FILE names: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("weir: %q (WEIR_CA_FILE) has no certificate in PEM: name the file with that of the authority that signed Weir's", o.CAFile)
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return transport, nil
}
