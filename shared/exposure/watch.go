// Package exposure tells of API keys that travelled in plaintext, so that tenants can flag or revoke them. A service that listens
// for itself, and so may be sent a key over plain HTTP, has a Watch.
package exposure

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

const (
	maxSeen    = 256              // requests in plaintext that wait to be looked at
	sayEvery   = 10 * time.Minute // at most once in that time is said of a key that it travels in plaintext
	maxExposed = 1 << 14          // keys of which it is remembered that it was said
)

// A Watch finds out which keys travel in plaintext. It looks at them after their requests were answered, so no answer and no
// time tells anybody whether a key is one.
type Watch struct {
	credentials *identity.Credentials
	say         Say
	clock       func() time.Time
	logger      *slog.Logger

	seen chan httpapi.PlaintextRequest
	said map[exposed]time.Time
}

// exposed is a key, and how it was seen.
type exposed struct{ key, how string }

// Say says that a key was exposed (see Publication). An error means that it was not, or perhaps not.
type Say func(ctx context.Context, exposed contract.KeyExposed) error

// NewWatch returns a watch that has seen nothing.
func NewWatch(credentials *identity.Credentials, say Say, clock func() time.Time, logger *slog.Logger) *Watch {
	return &Watch{
		credentials: credentials, say: say, clock: clock, logger: logger, seen: make(chan httpapi.PlaintextRequest, maxSeen), said: map[exposed]time.Time{},
	}
}

// See takes a request that came in plaintext. It never waits: where too many come at once, some are passed over, and those who
// go on like that are seen again.
func (w *Watch) See(request httpapi.PlaintextRequest) {
	select {
	case w.seen <- request:
	default:
	}
}

// Run says which keys were exposed until ctx ends.
func (w *Watch) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case request := <-w.seen:
			w.look(ctx, request)
		}
	}
}

// look says that a key was exposed, where it is one that works.
func (w *Watch) look(ctx context.Context, request httpapi.PlaintextRequest) {
	who, err := identity.APIKey(w.credentials, request.Key)
	if err != nil {
		return // there is nothing to lose
	}
	news := contract.KeyExposed{
		Organization: who.Organization, Project: who.Project, APIKey: who.ID, How: contract.ExposedPlainHTTP, At: w.clock().UTC(),
		Address: httpapi.AddressText(request.Address), Client: httpapi.ClipClient(request.Client, contract.MaxClient),
	}
	if request.Forwarded {
		news.How = contract.ExposedForwarded
	}
	what := exposed{news.APIKey, news.How}
	if at, before := w.said[what]; before && news.At.Sub(at) < sayEvery {
		return
	}
	if len(w.said) >= maxExposed {
		clear(w.said)
	}
	if err := w.say(ctx, news); err != nil && !errors.Is(err, context.Canceled) {
		w.logger.Warn("cannot say that a key was exposed", slog.String("key", who.ID), slog.String("error", err.Error()))
		return
	}
	w.said[what] = news.At
}
