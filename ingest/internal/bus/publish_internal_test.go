package bus

import (
	"reflect"
	"testing"
	"time"

	"github.com/weirlog/weir/ingest/internal/outcomes"
	"github.com/weirlog/weir/shared/contract"
)

// Counts are published as they were counted, every field of them.
func TestRequestsCounted(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	got := requestsCounted(outcomes.Counts{Organization: "org", Process: "run", Sequence: 7, From: at, To: at.Add(time.Second), Counts: []outcomes.Count{
		{Project: "prj", APIKey: "key", Environment: "prod", Outcome: contract.OutcomeRejected, Reason: "empty_batch", Requests: 1, Entries: 2, Bytes: 3, KeyInBody: 4},
	}})
	want := contract.RequestsCounted{Organization: "org", Process: "run", Sequence: 7, From: at, To: at.Add(time.Second), Counts: []contract.RequestCount{
		{Project: "prj", APIKey: "key", Environment: "prod", Outcome: contract.OutcomeRejected, Reason: "empty_batch", Requests: 1, Entries: 2, Bytes: 3, KeyInBody: 4},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("published is %+v, want %+v", got, want)
	}
}
