package notifications_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/tenants/internal/notifications"
)

// The oldest deliveries of a webhook with too many are removed,
// a few in each transaction; those of other webhooks stay.
func TestCrowdedWebhooks(t *testing.T) {
	to := newReceiver(t, 200)
	r := newRoom(t, to.Certificate())
	busy, _ := r.create(t, "org_a", to.URL)
	quiet, _ := r.create(t, "org_b", to.URL)
	for _, id := range []string{"evt_1", "evt_2", "evt_3", "evt_4", "evt_5", "evt_6", "evt_7"} {
		r.consume(t, r.exhausted(t, id, "org_a"))
		r.pass(time.Second)
	}
	r.consume(t, r.exhausted(t, "evt_b", "org_b"))
	newest := r.sent(t, busy)[:2]
	table := notifications.DeliveriesForTest(r.clock, 2, 3)
	for round, want := range []struct {
		removed int64
		more    bool
	}{{3, true}, {2, false}, {0, false}} {
		err := pg.InTx(t.Context(), r.pool, func(tx pgx.Tx) error {
			removed, more, err := table.Prune(t.Context(), tx)
			if removed != want.removed || more != want.more {
				t.Errorf("round %d removes %d, more: %t, want %+v", round, removed, more, want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	left := r.sent(t, busy)
	if len(left) != 2 || left[0].ID != newest[0].ID || left[1].ID != newest[1].ID || len(r.sent(t, quiet)) != 1 {
		t.Errorf("left are %+v and %+v", left, r.sent(t, quiet))
	}
}
