package replica

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// When a rest ends, one read tries the replica. The others do without
// until it is answered, or until another rest is over.
func TestOneReadTriesTheReplica(t *testing.T) {
	now := time.Unix(1, 0)
	h := newHealth(time.Second, Options{Clock: func() time.Time { return now }, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)})
	asked := func(want ...bool) {
		t.Helper()
		for i, ask := range want {
			if h.rests() == ask {
				t.Errorf("read %d asks the replica: %t", i, !ask)
			}
		}
	}
	asked(true, true)
	h.failed(t.Context(), errBehind)
	asked(false, false)
	now = now.Add(time.Second)
	asked(true, false, false)
	now = now.Add(time.Second)
	asked(true, false)
	gone, leave := context.WithCancel(t.Context())
	leave()
	h.failed(gone, context.Canceled)
	asked(true, false)
	h.answered() // one that had begun before
	asked(false)
	h.reached()
	asked(true, true)
	h.failed(gone, context.Canceled)
	asked(true, true)
}
