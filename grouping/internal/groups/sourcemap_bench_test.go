package groups_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/weirlog/weir/grouping/internal/groupingtest"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/shared/identity"
)

// BenchmarkUpload20MB uploads a map of 20 MB into PostgreSQL, and measures by how
// much the heap grows at most, beside the text.
func BenchmarkUpload20MB(b *testing.B) {
	service, text := groupingtest.New(b), groupingtest.LargeMap()
	b.SetBytes(int64(len(text)))
	runtime.GC()
	begun := heap()
	var peak uint64
	stop := make(chan struct{})
	measured := make(chan uint64)
	go func() {
		for {
			select {
			case <-stop:
				measured <- peak
				return
			case <-time.After(5 * time.Millisecond):
				peak = max(peak, heap())
			}
		}
	}()
	n := 0
	for b.Loop() {
		n++
		upload := groups.Upload{Release: string(rune('0' + n)), Name: "app.js", Text: text}
		if _, _, err := service.SourceMaps.Upload(b.Context(), groups.Request{Who: identity.Principal{Organization: "acme"}}, "shop", upload); err != nil {
			b.Fatal(err)
		}
	}
	close(stop)
	b.ReportMetric(float64(<-measured-begun)/(1<<20), "peak-MiB")
}

// heap is how many bytes are in use or not yet collected.
func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
