package integrity_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirlog/weir/ledger/internal/integrity"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/watermark"
	"github.com/weirlog/weir/shared/contract"
)

// Empty hours count as sealed, except while the log holds unbooked
// records. The log's end is read once an hour.
func TestQuietHoursAreNotBehind(t *testing.T) {
	l, noon := ledgertest.New(t), ledgertest.November.Truncate(time.Hour)
	l.SetClock(noon)
	l.Apply(t, logged("acme", 0, 0, noon))
	var log watermark.End
	asked := 0
	sealer := &integrity.Sealer{
		Pool: l.Pool, Sealed: integrity.NewSealed(prometheus.NewRegistry()), Checkpoint: integrity.NewCheckpoint(prometheus.NewRegistry()),
		Time: func(context.Context, pgx.Tx) (time.Time, error) { return l.Now(), nil },
		End: func(context.Context) (watermark.End, error) {
			asked++
			return log, nil
		},
	}
	check := func(want time.Time) {
		t.Helper()
		if err := sealer.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := time.Unix(int64(testutil.ToFloat64(sealer.Sealed)), 0).UTC(); !got.Equal(want) {
			t.Errorf("at %s sealed through %s, want %s", l.Now(), got, want)
		}
	}
	l.SetClock(noon.Add(time.Hour + watermark.Settling))
	check(noon.Add(time.Hour))
	l.SetClock(noon.Add(5*time.Hour + watermark.Settling))
	check(noon.Add(5 * time.Hour))
	for before := asked; l.Now().Before(noon.Add(6*time.Hour + watermark.Settling)); l.Pass(5 * time.Minute) {
		check(noon.Add(5 * time.Hour))
		if asked > before {
			t.Fatal("the brokers are asked where the log ends, though no hour is over that is not sealed")
		}
	}
	log.Next = contract.Positions{0: 2}
	l.SetClock(noon.Add(9 * time.Hour))
	check(noon.Add(5 * time.Hour))
	if links := links(t, l, "acme"); len(links) != 1 || links[0].Charges != 1 {
		t.Errorf("links %+v", links)
	}
}
