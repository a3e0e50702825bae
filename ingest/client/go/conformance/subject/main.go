// Command subject lets the SDK take part in the suite of all clients, which
// says what it has to do.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"time"

	weir "github.com/weirlog/weir/ingest/client/go"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: subject ENTRIES SECONDS")
	}
	count, errCount := strconv.Atoi(args[0])
	seconds, errSeconds := strconv.Atoi(args[1])
	if err := errors.Join(errCount, errSeconds); err != nil || count < 1 {
		return fmt.Errorf("%q are not a number of entries and of seconds: %w", args, err)
	}
	client, err := weir.New(weir.Options{Limits: weir.Limits{
		BatchDelay: 50 * time.Millisecond, GiveUpAfter: time.Duration(seconds) * time.Second, QueueEntries: count + 1, QueueBytes: 256 << 20,
	}})
	if err != nil {
		return err
	}
	log := slog.New(weir.NewHandler(client, weir.HandlerOptions{}))
	took := logAll(log, count)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	_ = client.Flush(ctx) // what failed is in the stats
	_ = client.Close(ctx)
	log.Info("after close")
	return report(client.Stats(), took)
}

func logAll(log *slog.Logger, count int) []time.Duration {
	took := make([]time.Duration, count)
	for i := range took {
		begun := time.Now()
		if i%10 == 0 {
			log.Error(fmt.Sprintf("entry %d", i), "error", fmt.Errorf("%d: %w", i, os.ErrNotExist))
		} else {
			log.Info(fmt.Sprintf("entry %d", i), "number", i, "odd", "\xff")
		}
		took[i] = time.Since(begun)
	}
	slices.Sort(took)
	return took
}

// report prints reasons as the suite names them.
func report(stats weir.Stats, took []time.Duration) error {
	names := map[weir.Reason]string{weir.Unauthorized: "api_key_revoked", weir.Expired: "no_answer"}
	dropped := map[string]uint64{}
	for reason, n := range stats.Dropped {
		if name := names[reason]; name != "" {
			dropped[name] += n
		} else if reason != weir.Closed {
			dropped[string(reason)] += n
		}
	}
	micros := func(at int) float64 { return float64(took[at].Nanoseconds()) / 1000 }
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"accepted": stats.Accepted, "dropped": dropped, "p50_us": micros(len(took) / 2), "p99_us": micros(len(took) * 99 / 100),
	})
}
