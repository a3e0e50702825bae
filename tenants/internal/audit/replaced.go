package audit

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/bus"
)

// replacedAtOnce are removed in one transaction.
const replacedAtOnce = 1000

// listReplaced are events that a later one of their stream replaces whose line is gone, too: each line that is left tells what was before it.
const listReplaced = `
SELECT e.organization, e.stream, e.version FROM audit_anchors a JOIN events e ON e.organization = a.organization AND e.position <= a.position
 WHERE e.name = ANY($1) AND EXISTS (SELECT FROM events later WHERE later.organization = e.organization AND later.stream = e.stream
	AND later.version > e.version AND later.name = e.name AND later.position <= a.position)
 ORDER BY e.organization, e.stream, e.version LIMIT $2`

// pruneReplaced keeps short the streams of things that are there for years: of a passkey, each sign-in is an event.
func (e events) pruneReplaced(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	rows, err := tx.Query(ctx, listReplaced, replacedNames(), replacedAtOnce)
	if err != nil {
		return 0, false, err
	}
	gone, count, err := collectReplaced(rows)
	if err != nil || count == 0 {
		return 0, false, err
	}
	if err := e.withdraw(ctx, tx, gone); err != nil {
		return 0, false, err
	}
	for _, g := range gone {
		_, err := tx.Exec(ctx, `DELETE FROM events WHERE organization = $1 AND stream = $2 AND version = ANY($3)`, g.Stream.Organization, g.Stream.Name, g.Versions)
		if err != nil {
			return 0, false, err
		}
	}
	return count, count == replacedAtOnce, nil
}

func replacedNames() (names []string) {
	for _, event := range tenants.ReplacedEvents() {
		names = append(names, event.EventName())
	}
	return names
}

// collectReplaced gathers versions by their streams, in whose order they come.
func collectReplaced(rows pgx.Rows) (gone []bus.Gone, count int64, err error) {
	var stream eventstore.Stream
	var version int64
	_, err = pgx.ForEachRow(rows, []any{&stream.Organization, &stream.Name, &version}, func() error {
		if len(gone) == 0 || gone[len(gone)-1].Stream != stream {
			gone = append(gone, bus.Gone{Stream: stream})
		}
		last := &gone[len(gone)-1]
		last.Versions = append(last.Versions, version)
		count++
		return nil
	})
	return gone, count, err
}
