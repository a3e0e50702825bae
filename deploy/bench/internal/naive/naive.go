// Package naive is the server that Weir is compared with.
package naive

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

	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	embedded "github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/measure"
)

// Command is what one writes in an afternoon: net/http with TLS, encoding/json,
// and kafka-go's Writer. It knows no keys, limits or quotas, charges nothing,
// and nobody reads what it writes. So it is the least that a server in Go
// costs without further work.
type Command struct{}

const topic = "naive"

// A Task is what the server is to do: write to these brokers, with its
// certificate in a directory. Without any it has a broker of its own, as the
// measured process has.
type Task struct {
	Dir     string
	Brokers []string
}

// open starts a broker if none was given.
func (t *Task) open() (end func() error, err error) {
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
func (*Command) Run(ctx context.Context) (err error) {
	var task Task
	if err := json.NewDecoder(os.Stdin).Decode(&task); err != nil {
		return err
	}
	end, err := task.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	files, noFiles := localca.Ensure(task.Dir, time.Now())
	noTopic := topics.Ensure(ctx, task.Brokers, []contract.Topic{{Name: topic, Partitions: contract.DefaultLogPartitions}})
	listener, deaf := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err := errors.Join(noFiles, noTopic, deaf); err != nil {
		return err
	}
	writer := &kafka.Writer{
		Addr: kafka.TCP(task.Brokers...), Topic: topic, Balancer: &kafka.Hash{}, RequiredAcks: kafka.RequireAll,
		BatchTimeout: time.Millisecond,
	}
	defer writer.Close()
	fmt.Fprintln(os.Stdout, listener.Addr())
	server := &http.Server{Handler: handler(writer), ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ServeTLS(listener, files.Server, files.ServerKey); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// An entry is an entry as the interface has it.
type entry struct {
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

// handler writes each entry as a record of its own.
func handler(writer *kafka.Writer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var batch struct{ Logs []entry }
		if err := json.NewDecoder(r.Body).Decode(&batch); err != nil || len(batch.Logs) == 0 {
			http.Error(w, "no entries", http.StatusBadRequest)
			return
		}
		records := make([]kafka.Message, len(batch.Logs))
		for i, one := range batch.Logs {
			value, err := json.Marshal(one)
			if err != nil || one.Message == "" || one.Level == "" || one.Timestamp.IsZero() {
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

// Start starts the server as a process of its own, and returns its address.
func Start(ctx context.Context, task Task) (*measure.Program, string, error) {
	return measure.Again(ctx, task.Dir, "naive", task)
}
