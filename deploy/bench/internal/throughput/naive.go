package throughput

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/shared/atomicfile"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv/measure"
)

// Naive is what one writes in an afternoon: net/http with TLS, encoding/json,
// and kafka-go's Writer. It knows no keys, limits or quotas, charges nothing,
// and nobody reads what it writes. So it is the least that a server in Go
// costs without further work.
type Naive struct {
	Dir     string   `help:"Directory for its certificate and address." required:""`
	Brokers []string `help:"Kafka, host:port." required:""`
}

const (
	naiveTopic   = "naive"
	naiveAddress = "address"
)

// Run serves until ctx ends.
func (n *Naive) Run(ctx context.Context) error {
	files, err := localca.Ensure(n.Dir, time.Now())
	if err == nil {
		err = topics.Ensure(ctx, n.Brokers, []contract.Topic{{Name: naiveTopic, Partitions: contract.DefaultLogPartitions}})
	}
	if err != nil {
		return err
	}
	writer := &kafka.Writer{
		Addr: kafka.TCP(n.Brokers...), Topic: naiveTopic, Balancer: &kafka.Hash{}, RequiredAcks: kafka.RequireAll,
		BatchTimeout: time.Millisecond,
	}
	defer writer.Close()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(n.Dir, naiveAddress), listener.Addr().String(), 0o600); err != nil {
		return err
	}
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
		key, records := []byte(r.Header.Get("x-api-key")), make([]kafka.Message, len(batch.Logs))
		for i, entry := range batch.Logs {
			value, err := json.Marshal(entry)
			if err != nil || entry.Message == "" || entry.Level == "" || entry.Timestamp.IsZero() {
				http.Error(w, "an entry is invalid", http.StatusBadRequest)
				return
			}
			records[i] = kafka.Message{Key: key, Value: value}
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
// own: at full load, then at the rates of the other phases.
func (c *Command) beside(ctx context.Context, dir string, brokers []string, node measure.Process, phases []phase) (found []phase, err error) {
	say("the same with a naive server")
	self, err := os.Executable()
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var output bytes.Buffer
	server := exec.CommandContext(ctx, self, "naive", "--dir", dir, "--brokers", strings.Join(brokers, ",")) //nolint:gosec // itself
	server.Stdout, server.Stderr = &output, &output
	if err := server.Start(); err != nil {
		cancel()
		return nil, err
	}
	defer func() {
		cancel()
		_ = server.Wait()
		if err != nil {
			err = fmt.Errorf("naive server: %w\n%s", err, output.Bytes())
		}
	}()
	return c.loadNaive(ctx, dir, []measure.Process{{Pid: server.Process.Pid}, {}, node, {Pid: os.Getpid()}}, phases)
}

func (c *Command) loadNaive(ctx context.Context, dir string, processes []measure.Process, phases []phase) (found []phase, err error) {
	api, err := naiveClient(ctx, dir, c.Senders)
	if err != nil {
		return nil, err
	}
	defer api.Close()
	var posted atomic.Int64
	loads := []measure.Load{{For: c.WarmUp}, {For: c.Saturated}}
	for _, p := range phases[1:] {
		loads = append(loads, measure.Load{For: c.Paced, PerSecond: p.perSecond / subject.EntriesPerBatch})
	}
	for _, load := range loads {
		load.Workers = c.Senders
		p, err := send(ctx, load, processes, func(ctx context.Context, body *subject.Body, at time.Time) error {
			number := posted.Add(1)
			body.Stamp(at, number*subject.EntriesPerBatch)
			_, err := api.Post(ctx, fmt.Sprintf("key %d", number%int64(c.Organizations)), client.Batch{Body: body.Text})
			return err
		})
		if err != nil {
			return nil, err
		}
		found = append(found, p)
	}
	return found[1:], nil
}

// naiveClient waits for the server's address.
func naiveClient(ctx context.Context, dir string, connections int) (api *client.Client, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err = measure.Until(ctx, 50*time.Millisecond, func(context.Context) (bool, error) {
		address, missing := os.ReadFile(filepath.Join(dir, naiveAddress)) //nolint:gosec // of this run
		if len(address) == 0 || missing != nil {
			return false, nil //nolint:nilerr // not there yet
		}
		api, err = client.New("https://"+string(address), localca.In(dir).CA, connections)
		return true, err
	})
	return api, err
}
