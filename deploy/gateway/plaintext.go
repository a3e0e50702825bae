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
	maxPlaintext     = 256 // requests waiting to be repeated
	plaintextTimeout = 5 * time.Second
	warnEvery        = time.Minute // at most: outsiders must not fill the log
)

// A PlaintextReporter repeats to ingest, over TLS, what the gateway has
// refused as plain HTTP: only the key and its sender. Ingest has the
// keys; the gateway does not.
type PlaintextReporter struct {
	Ingest    *url.URL
	Transport http.RoundTripper
	Logger    *slog.Logger

	seen   chan httpapi.PlaintextRequest
	warned time.Time // last; only for Run
}

// NewPlaintextReporter returns one without any reports.
func NewPlaintextReporter(ingest *url.URL, transport http.RoundTripper, logger *slog.Logger) *PlaintextReporter {
	return &PlaintextReporter{Ingest: ingest, Transport: transport, Logger: logger, seen: make(chan httpapi.PlaintextRequest, maxPlaintext)}
}

// See takes a request. It never waits: in a flood it drops some.
func (p *PlaintextReporter) See(request httpapi.PlaintextRequest) {
	select {
	case p.seen <- request:
	default:
	}
}

// Run repeats requests until ctx ends.
func (p *PlaintextReporter) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case request := <-p.seen:
			if err := p.repeat(ctx, request); err != nil && ctx.Err() == nil {
				p.warn(err)
			}
		}
	}
}

// warn logs why a request to ingest failed, at most once in warnEvery.
func (p *PlaintextReporter) warn(err error) {
	if now := time.Now(); p.warned.IsZero() || now.Sub(p.warned) >= warnEvery {
		p.warned = now
		p.Logger.Warn("cannot report a key that came in plaintext to ingest", slog.String("error", err.Error()))
	}
}

// repeat sends a request that ingest refuses as the gateway did. Its
// error does not show the key.
func (p *PlaintextReporter) repeat(ctx context.Context, seen httpapi.PlaintextRequest) error {
	ctx, cancel := context.WithTimeout(ctx, plaintextTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.Ingest.JoinPath("v1", "logs").String(), nil)
	if err != nil {
		return err
	}
	request.Header.Set("X-Api-Key", seen.Key)
	request.Header.Set("User-Agent", seen.Client)
	if seen.Address.IsValid() {
		request.Header.Set("X-Forwarded-For", seen.Address.String())
	}
	if seen.Forwarded {
		request.Header.Set("X-Forwarded-Proto", "http")
	} else {
		request.Header.Set(httpapi.HeaderPlaintext, "1")
	}
	answer, err := p.Transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden {
		return fmt.Errorf("it answers %s: does it trust the gateway, by WEIR_TRUSTED_PROXIES?", answer.Status)
	}
	return nil
}
