package loadgen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/weirlog/weir/deploy/client"
)

// A tally counts sent posts. Safe for concurrent use.
type tally struct {
	begun time.Time

	mu       sync.Mutex
	posts    int
	skipped  int // posts left out because too many were in flight
	entries  int
	failures int // entries with an error
	bytes    int64
	took     []time.Duration
}

// post delivers one batch and counts it. The end of ctx is no error.
func (t *tally) post(ctx context.Context, api *client.Client, key string, batch sizedBatch) error {
	begun := time.Now()
	accepted, err := api.Deliver(ctx, key, batch.Batch)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot post a batch: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.posts++
	t.entries += accepted.Processed
	t.failures += batch.failures
	t.bytes += accepted.BytesUsed
	t.took = append(t.took, time.Since(begun))
	return nil
}

func (t *tally) skip() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.skipped++
}

// barWidth is the width of the progress bar in characters.
const barWidth = 30

// show writes one line of progress.
func (t *tally) show(out io.Writer, config Config) {
	t.mu.Lock()
	defer t.mu.Unlock()
	elapsed := min(time.Since(t.begun), config.Duration)
	done := int(elapsed * barWidth / max(config.Duration, 1))
	before, after := "", "\n"
	if config.Overwrite {
		before, after = "\r", ""
	}
	fmt.Fprintf(out, "%s[%-*s] %2.0f s  %d posts, %d entries, %d errors, %s, p50 %s p99 %s%s", before, barWidth, bar(done),
		elapsed.Seconds(), t.posts, t.entries, t.failures, size(t.bytes), t.percentile(50), t.percentile(99), after)
}

func bar(n int) string {
	return "##############################"[:min(n, barWidth)]
}

// percentile formats a percentile of the answer times so far.
func (t *tally) percentile(p int) string {
	if len(t.took) == 0 {
		return "-"
	}
	sorted := slices.Sorted(slices.Values(t.took))
	return sorted[(len(sorted)-1)*p/100].Round(100 * time.Microsecond).String()
}

// size formats bytes for people.
func size(bytes int64) string {
	switch {
	case bytes < 1<<10:
		return fmt.Sprintf("%d B", bytes)
	case bytes < 1<<20:
		return fmt.Sprintf("%.1f KB", float64(bytes)/(1<<10))
	case bytes < 1<<30:
		return fmt.Sprintf("%.1f MB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%.1f GB", float64(bytes)/(1<<30))
}
