package front

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"

	"github.com/weirlog/weir/ingest/benchmark"
)

// Door is the measured process. Its task is a benchmark.Front.
type Door struct{}

// Run reads the task from standard input, says its address, and serves until ctx ends.
func (*Door) Run(ctx context.Context, logger *slog.Logger) error {
	var task benchmark.Front
	if err := json.NewDecoder(os.Stdin).Decode(&task); err != nil {
		return err
	}
	return task.Run(ctx, logger, func(addr string) { fmt.Fprintln(os.Stdout, addr) })
}
