package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants"
)

// TombstonesName names the relay's cursor
// of session tombstones. It is stored.
const TombstonesName = "tenants-forgetting"

// tombstoneDelay is how long a session is kept after its
// latest end: no older record can follow the tombstone,
// and a clock that is a day late admits nobody.
const tombstoneDelay = 24 * time.Hour

// SessionTombstones removes past sessions from weir.credentials.v1, which
// would otherwise keep every sign-in and renewal forever, in the memory
// of every service. Revoked keys stay: their holders get the reason.
type SessionTombstones struct {
	events *events
	clock  func() time.Time
}

// NewSessionTombstones returns the tombstones of the sessions in a store.
func NewSessionTombstones(store *events, clock func() time.Time) *SessionTombstones {
	return &SessionTombstones{events: store, clock: clock}
}

// Read is a relay's source: a tombstone for each secret of
// the past sessions started after a cursor. It ends at the
// first that is not past: later ones rarely end before it.
func (f *SessionTombstones) Read(ctx context.Context, tx pgx.Tx, after relay.Cursor, limit int) ([]relay.Outgoing, error) {
	if err := pg.AsSystem(ctx, tx); err != nil {
		return nil, err
	}
	events, err := f.events.ReadAll(ctx, tx, eventstore.Cursor(after.Position), limit)
	if err != nil {
		return nil, err
	}
	var messages []relay.Outgoing
	for _, event := range events {
		started, isSession := event.Event.(tenants.SessionStarted)
		switch {
		case !isSession:
			messages = append(messages, skip(event)...)
			continue
		case f.clock().Before(latestEnd(started).Add(tombstoneDelay)) || len(messages) > limit:
			return messages, nil
		}
		more, err := f.forget(ctx, tx, event)
		if err != nil {
			return nil, fmt.Errorf("cannot forget %q: %w", event.Stream, err)
		}
		messages = append(messages, more...)
	}
	return messages, nil
}

// latestEnd is when a session ends at the latest. The
// first sessions could not be renewed and lack it.
func latestEnd(started tenants.SessionStarted) time.Time {
	if started.EndsAt != nil {
		return *started.EndsAt
	}
	return started.ExpiresAt
}

// forget is a tombstone for each secret that a session ever had.
func (f *SessionTombstones) forget(ctx context.Context, tx pgx.Tx, r recorded) (messages []relay.Outgoing, err error) {
	history, err := f.events.ReadOutwardTx(ctx, tx, r.Stream)
	if err != nil {
		return nil, err
	}
	session, seen := tenants.Session{}, map[string]bool{}
	for _, event := range history {
		session.Apply(event.Event)
		if hash := session.Digest.Hash; !seen[hash] {
			seen[hash] = true
			messages = append(messages, tombstone(r, f.clock(), hash, len(seen)))
		}
	}
	return messages, nil
}

// tombstone is a record without a value: compaction removes
// the key's previous record, and then the tombstone.
func tombstone(r recorded, at time.Time, hash string, number int) relay.Outgoing {
	event := outgoingEvent{kind: contract.TypeCredentialChanged, at: at}
	m := message.NewMessage(fmt.Sprintf("%s/%d/forgotten/%d", event.kind, r.Cursor, number), nil)
	m.Metadata = event.headers(r, m.UUID)
	m.Metadata[weirbus.KeyMetadata] = hash
	return relay.Outgoing{Topic: contract.TopicCredentials, Message: m, Cursor: place(r)}
}
