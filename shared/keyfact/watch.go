package keyfact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

const (
	maxSeen      = 256              // requests in plaintext that wait for a check
	exposedEvery = 10 * time.Minute // for each key and way, at most once in that time
	maxExposed   = 1 << 14          // keys whose last fact is remembered
)

// A Watch finds keys that were sent in plaintext. It checks them after
// their requests were answered, so that no answer or duration reveals
// whether a key is valid.
type Watch struct {
	credentials *identity.Credentials
	publish     func(context.Context, contract.KeyExposed) error
	clock       func() time.Time
	logger      *slog.Logger

	seen      chan httpapi.PlaintextRequest
	published map[exposed]time.Time // bounded by maxExposed
}

// exposed is a key, and how it was exposed.
type exposed struct{ key, how string }

// NewWatch returns a watch that has seen nothing.
func NewWatch(credentials *identity.Credentials, publish func(context.Context, contract.KeyExposed) error, clock func() time.Time,
	logger *slog.Logger) *Watch {
	return &Watch{
		credentials: credentials, publish: publish, clock: clock, logger: logger, seen: make(chan httpapi.PlaintextRequest, maxSeen),
		published: map[exposed]time.Time{},
	}
}

// See takes a request sent in plaintext. It never waits: it drops some
// in a flood, and sees repeated ones later.
func (w *Watch) See(request httpapi.PlaintextRequest) {
	select {
	case w.seen <- request:
	default:
	}
}

// Run publishes exposed keys until ctx ends.
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

// look publishes that a key was exposed, if it is valid.
func (w *Watch) look(ctx context.Context, request httpapi.PlaintextRequest) {
	who, err := identity.APIKey(w.credentials, request.Key)
	if err != nil {
		return // no valid key, nothing exposed
	}
	fact := contract.KeyExposed{
		Organization: who.Organization, Project: who.Project, APIKey: who.ID, How: contract.ExposedPlainHTTP, At: w.clock().UTC(),
		Address: httpapi.AddressText(request.Address), Client: httpapi.ClipUserAgent(request.Client, contract.MaxClient),
	}
	if request.Forwarded {
		fact.How = contract.ExposedForwarded
	}
	what := exposed{fact.APIKey, fact.How}
	if at, before := w.published[what]; before && fact.At.Sub(at) < exposedEvery {
		return
	}
	if len(w.published) >= maxExposed {
		clear(w.published)
	}
	if err := w.publish(ctx, fact); err != nil && !errors.Is(err, context.Canceled) {
		w.logger.Warn("cannot publish that a key was exposed", slog.String("key", who.ID), slog.String("error", err.Error()))
		return
	}
	w.published[what] = fact.At
}

// A Publisher publishes what one service has seen of API keys.
type Publisher struct {
	Bus    *publisher.Publisher
	Source string // ce_source of the service, such as weir/ledger
	Clock  func() time.Time
	Logger *slog.Logger
}

// Used publishes a key's uses. An error means that they were not
// published. With an unknown outcome the uses are dropped: counting
// them twice would be wrong.
func (p *Publisher) Used(ctx context.Context, used contract.KeyUsed) error {
	err := p.publish(ctx, contract.TypeKeyUsed, used.Organization, used.APIKey, used)
	if errors.Is(err, bus.ErrUnknownOutcome) {
		p.Logger.Warn("some uses of a key are perhaps not published", slog.String("key", used.APIKey), slog.String("error", err.Error()))
		return nil
	}
	return err
}

// Exposed publishes that a key was exposed. After an error it may be
// unpublished; publishing it again is harmless.
func (p *Publisher) Exposed(ctx context.Context, exposed contract.KeyExposed) error {
	return p.publish(ctx, contract.TypeKeyExposed, exposed.Organization, exposed.APIKey, exposed)
}

func (p *Publisher) publish(ctx context.Context, eventType, organization, key string, fact any) error {
	encoded, err := json.Marshal(fact)
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", eventType, err)
	}
	m := message.NewMessage(uuid.NewString(), encoded)
	m.Metadata = contract.Attributes{ID: m.UUID, Type: eventType, Source: p.Source, Time: p.Clock(), Organization: organization}.Headers()
	m.Metadata[bus.KeyMetadata] = key
	if _, err = p.Bus.PublishContext(ctx, contract.TopicIngest, m); err != nil {
		return fmt.Errorf("cannot publish %s of key %q: %w", eventType, key, err)
	}
	return nil
}
