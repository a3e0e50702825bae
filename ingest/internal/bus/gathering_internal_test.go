package bus

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirlog/weir/shared/contract"
)

// A lagging store builds blocks on several processors: here of two
// projects at once, or the first would wait forever.
func TestGathersOnSeveralProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	var both sync.WaitGroup
	both.Add(2)
	met := make(chan struct{})
	go func() { both.Wait(); close(met) }()
	newID := func() string {
		both.Done()
		select {
		case <-met:
		case <-time.After(10 * time.Second):
			t.Error("no block is made beside another")
		}
		return uuid.NewString()
	}
	var records []fresh
	for _, project := range []string{"prj_1", "prj_2"} {
		records = append(records, fresh{logs: contract.LogsAccepted{
			Batch: uuid.NewString(), Part: 1, Parts: 1, Organization: "org_1", Project: project, Environment: "prod", Time: time.Now(), Entries: 1,
			Lines: []byte(`{"timestamp":"2026-11-21T12:00:00Z","level":"info","message":"hello"}` + "\n"),
		}})
	}
	if blocks, err := gather(records, newID); err != nil || len(blocks) != 2 {
		t.Errorf("%d blocks, %v", len(blocks), err)
	}
}
