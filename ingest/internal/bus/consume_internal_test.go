package bus

import (
	"fmt"
	"runtime"
	"strings"
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

// BenchmarkGather makes the blocks of a full transaction of one project: 8 MB
// in batches of 100 entries. -cpu 1,2 shows what another processor gives.
func BenchmarkGather(b *testing.B) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var records []fresh
	bytes := 0
	for i := range 270 {
		at := noon.Add(time.Duration(i) * time.Millisecond)
		var lines strings.Builder
		for j := range 100 {
			fmt.Fprintf(&lines, `{"timestamp":"%s","level":"info","message":"request %d of customer %d took %d ms","metadata":{"path":"/carts/%d/items","status":200,"region":"eu-west-1",`+
				`"trace":"%032x","agent":"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"}}`+"\n", at.Format(time.RFC3339Nano), i*100+j, j*7919, j, j*i, i*100+j)
		}
		bytes += lines.Len()
		records = append(records, fresh{logs: contract.LogsAccepted{
			Batch: uuid.NewString(), Part: 1, Parts: 1, Organization: "org_1", Project: "prj_1", Environment: "prod", Time: at, Entries: 100, Lines: []byte(lines.String()),
		}})
	}
	b.SetBytes(int64(bytes))
	for b.Loop() {
		if _, err := gather(records, uuid.NewString); err != nil {
			b.Fatal(err)
		}
	}
}
