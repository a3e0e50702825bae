package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
)

const (
	maxInClear     = 256 // requests that wait to be repeated
	inClearTimeout = 5 * time.Second
	warnEvery      = time.Minute // at most: strangers must not fill the log
)

// InClear repeats to ingest, over TLS, what the gateway has refused because it came over plain HTTP: the key and who sent
// it, no more. Ingest knows which keys there are; the gateway does not.
type InClear struct {
	Ingest    *url.URL
	Transport http.RoundTripper
	Logger    *slog.Logger

	seen   chan httpapi.InClear
	warned time.Time // last; belongs to Run
}

// NewInClear makes one that has seen nothing.
func NewInClear(ingest *url.URL, transport http.RoundTripper, logger *slog.Logger) *InClear {
	return &InClear{Ingest: ingest, Transport: transport, Logger: logger, seen: make(chan httpapi.InClear, maxInClear)}
}

// See takes a request. It never waits: where too many come at once, some are passed over.
func (c *InClear) See(request httpapi.InClear) {
	select {
	case c.seen <- request:
	default:
	}
}

// Run repeats requests until ctx ends.
func (c *InClear) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case request := <-c.seen:
			if err := c.repeat(ctx, request); err != nil && ctx.Err() == nil {
				c.warn(err)
			}
		}
	}
}

// warn reports why a request to ingest failed, at most once in warnEvery.
func (c *InClear) warn(err error) {
	if now := time.Now(); c.warned.IsZero() || now.Sub(c.warned) >= warnEvery {
		c.warned = now
		c.Logger.Warn("cannot tell ingest of a key that came in clear", slog.String("error", err.Error()))
	}
}

// repeat sends a request that ingest refuses just as the gateway did. Its error does not show the key.
func (c *InClear) repeat(ctx context.Context, seen httpapi.InClear) error {
	ctx, cancel := context.WithTimeout(ctx, inClearTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Ingest.JoinPath("v1", "logs").String(), nil)
	if err != nil {
		return err
	}
	request.Header.Set("X-Api-Key", seen.Key)
	request.Header.Set("User-Agent", seen.Client)
	if seen.Address.IsValid() {
		request.Header.Set("X-Forwarded-For", seen.Address.String())
	}
	if seen.ByWord {
		request.Header.Set("X-Forwarded-Proto", "http")
	} else {
		request.Header.Set(httpapi.HeaderInClear, "1")
	}
	answer, err := c.Transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden {
		return fmt.Errorf("it answers %s: does it trust the gateway, by WEIR_TRUSTED_PROXIES?", answer.Status)
	}
	return nil
}
