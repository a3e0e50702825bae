package throughput

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/testenv/apache"
)

// A broker is a measured broker.
type broker struct {
	name  string
	start func(ctx context.Context, dir string) (running, error)
}

// A running broker outside the measured process; the zero value is
// one inside it.
type running struct {
	brokers string
	pid     int        // 0: elsewhere
	sync    kafka.Sync // of one inside it; "": always
	stop    func() error
}

// errSkipped is why a broker is not measured.
var errSkipped = errors.New("skipped")

// embedded is the broker in the measured process.
var embedded = broker{"embedded broker", func(context.Context, string) (running, error) {
	return running{stop: func() error { return nil }}, nil
}}

// unsynced is the same, which leaves fsync to the operating system.
var unsynced = broker{"embedded broker, no fsync", func(context.Context, string) (running, error) {
	return running{sync: kafka.SyncOS, stop: func() error { return nil }}, nil
}}

// given returns a Kafka at the given addresses.
func given(brokers []string) broker {
	return broker{"given Kafka", func(context.Context, string) (running, error) {
		return running{brokers: strings.Join(brokers, ","), stop: func() error { return nil }}, nil
	}}
}

// local is an Apache Kafka node started on this machine.
var local = broker{"Apache Kafka " + apache.Version, func(ctx context.Context, dir string) (running, error) {
	node, err := apache.Start(ctx, apache.Config{Dir: filepath.Join(dir, "apache-kafka")})
	if errors.Is(err, apache.ErrMissing) {
		return running{}, fmt.Errorf("%w: %w; give the address of a Kafka with WEIR_BENCH_BROKERS", errSkipped, err)
	}
	if err != nil {
		return running{}, err
	}
	return running{brokers: node.Addr(), pid: node.Pid(), stop: node.Stop}, nil
}}
