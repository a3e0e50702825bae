package throughput

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	embedded "github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/measure"
)

// Naive is what one writes in an afternoon: net/http with TLS, encoding/json,
// and kafka-go's Writer. It knows no keys, limits or quotas, charges nothing,
// and nobody reads what it writes. So it is the least that a server in Go
// costs without further work.
type Naive struct{}

const naiveTopic = "naive"

// A naiveTask is what the server is to do: write to these brokers, with its
// certificate in a directory. Without any it has a broker of its own, as the
// measured process has.
type naiveTask struct {
	Dir     string
	Brokers []string
}

// open starts a broker if none was given.
func (t *naiveTask) open() (end func() error, err error) {
	if len(t.Brokers) > 0 {
		return func() error { return nil }, nil
	}
	own, err := embedded.Start(embedded.Config{Dir: filepath.Join(t.Dir, "naive-kafka"), Open: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	t.Brokers = []string{own.Addr()}
	return own.Close, nil
}

// Run reads a task from standard input, says its address, and serves until
// ctx ends.
func (*Naive) Run(ctx context.Context) (err error) {
	var task naiveTask
	if err := json.NewDecoder(os.Stdin).Decode(&task); err != nil {
		return err
	}
	end, err := task.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	files, noFiles := localca.Ensure(task.Dir, time.Now())
	noTopic := topics.Ensure(ctx, task.Brokers, []contract.Topic{{Name: naiveTopic, Partitions: contract.DefaultLogPartitions}})
	listener, deaf := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err := errors.Join(noFiles, noTopic, deaf); err != nil {
		return err
	}
	writer := &kafka.Writer{
		Addr: kafka.TCP(task.Brokers...), Topic: naiveTopic, Balancer: &kafka.Hash{}, RequiredAcks: kafka.RequireAll,
		BatchTimeout: time.Millisecond,
	}
	defer writer.Close()
	fmt.Fprintln(os.Stdout, listener.Addr())
	server := &http.Server{Handler: naiveHandler(writer), ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ServeTLS(listener, files.Server, files.ServerKey); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// A naiveEntry is an entry as the interface has it.
type naiveEntry struct {
	Timestamp   time.Time      `json:"timestamp"`
	Level       string         `json:"level"`
	Message     string         `json:"message"`
	Environment string         `json:"environment,omitempty"`
	Metadata    map[string]any `json:"metadata,omitempty"`
	Error       *struct {
		Type       string   `json:"type"`
		Message    string   `json:"message"`
		StackTrace []string `json:"stack_trace"`
	} `json:"error,omitempty"`
}

// naiveHandler writes each entry as a record of its own.
func naiveHandler(writer *kafka.Writer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var batch struct{ Logs []naiveEntry }
		if err := json.NewDecoder(r.Body).Decode(&batch); err != nil || len(batch.Logs) == 0 {
			http.Error(w, "no entries", http.StatusBadRequest)
			return
		}
		records := make([]kafka.Message, len(batch.Logs))
		for i, entry := range batch.Logs {
			value, err := json.Marshal(entry)
			if err != nil || entry.Message == "" || entry.Level == "" || entry.Timestamp.IsZero() {
				http.Error(w, "an entry is invalid", http.StatusBadRequest)
				return
			}
			records[i] = kafka.Message{Key: []byte(r.Header.Get("x-api-key")), Value: value}
		}
		if err := writer.WriteMessages(r.Context(), records...); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]int{"processed": len(records)})
	}
}

// beside measures the naive server on the same brokers, as a process of its
// own, under the loads of other phases.
func (r *run) beside(ctx context.Context, brokers []string, phases []phase) (found []phase, err error) {
	subject.Say("  the same with a naive server")
	server, address, err := measure.Again(ctx, r.dir, "naive", naiveTask{r.dir, brokers})
	if err != nil {
		return nil, fmt.Errorf("naive server: %w", err)
	}
	defer func() {
		_, stopped := server.Stop()
		err = errors.Join(err, stopped)
	}()
	api, err := client.New("https://"+address, localca.In(r.dir).CA, r.scale.senders)
	if err != nil {
		return nil, err
	}
	defer api.Close()
	processes := append([]measure.Process{{Pid: server.Pid}, {}}, r.processes[node:]...)
	loads := []measure.Load{r.load(r.scale.warmUp, 0), r.load(r.Saturated, 0)}
	for _, p := range phases[1:] {
		loads = append(loads, r.load(r.scale.paced, p.perSecond))
	}
	for _, load := range loads {
		p, err := r.send(ctx, load, processes, func(ctx context.Context, body *subject.Body, number int64, _ time.Time) error {
			_, err := api.Post(ctx, fmt.Sprintf("key %d", number%int64(r.scale.organizations)), client.Batch{Body: body.Text})
			return err
		})
		if err != nil {
			return nil, err
		}
		found = append(found, p)
	}
	return found[1:], nil
}
