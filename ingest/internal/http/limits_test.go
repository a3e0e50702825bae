package http

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest"
)

// A contended quota is decided once the ledger has counted. The larger
// its lag, the longer the client waits.
func TestContendedRequestsWaitForTheLedger(t *testing.T) {
	for lag, want := range map[time.Duration]string{0: "1", 200 * time.Millisecond: "1", 12 * time.Second: "12", time.Hour: "30"} {
		for stage, found := range map[string]int64{"before the body": 1000, "behind it": 999} {
			in := newIntake(t, &memoryLog{}, ingest.Account{Limit: 1000, NextLimit: 1000})
			in.Service.Gate.Found(ingest.Charge{Organization: "org_1", Project: "prj_1", Key: "key_1", At: start.Add(-lag), Bytes: found, Offset: 1})
			w := serve(in, newPost(bytes.NewReader(body(1)), "Idempotency-Key", "k"))
			if got := w.Header().Get("Retry-After"); w.Code != 429 || !strings.Contains(w.Body.String(), codeOverloaded) || got != want {
				t.Errorf("%s, a ledger late by %s: %d %s, Retry-After %q, want %s", stage, lag, w.Code, w.Body, got, want)
			}
		}
	}
}
