package audit

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/bus"
)

// replacedBatch is how many lines one transaction removes.
const replacedBatch = 1000

// listReplaced are replaced events whose lines are gone,
// too: each remaining line needs the state before it.
const listReplaced = `
SELECT e.organization, e.stream, e.version FROM audit_anchors a JOIN events e ON e.organization = a.organization AND e.position <= a.position
  JOIN unnest($1::text[], $2::int[], $3::text[]) AS replaced (name, by, switch) USING (name)
 WHERE EXISTS (SELECT FROM events later WHERE later.organization = e.organization AND later.stream = e.stream
	AND later.version > e.version AND later.name = e.name AND later.position <= a.position
	AND (e.data ->> replaced.switch IS DISTINCT FROM 'true' OR later.data ->> replaced.switch = 'true') OFFSET replaced.by - 1)
 ORDER BY e.organization, e.stream, e.version LIMIT $4`

// pruneReplaced keeps streams of long-lived things
// short: of a passkey, each sign-in is an event.
func (e events) pruneReplaced(ctx context.Context, tx pgx.Tx) (removed int64, more bool, err error) {
	names, by, switches := replacedColumns()
	rows, err := tx.Query(ctx, listReplaced, names, by, switches, replacedBatch)
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
	return count, count == replacedBatch, nil
}

func replacedColumns() (names []string, by []int, switches []string) {
	for _, replaced := range tenants.ReplacedEvents() {
		names, by, switches = append(names, replaced.Event.EventName()), append(by, replaced.By), append(switches, replaced.Switch)
	}
	return names, by, switches
}

// collectReplaced groups versions by stream. Rows must be sorted by stream.
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
