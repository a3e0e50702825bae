package kafkatest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/filelock"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/fault"
	"github.com/weirlog/weir/shared/testenv/internal/backend"
)

// Brokers gives the test a broker without topics and returns its addresses.
//
// A top-level test and its subtests share one broker while any of them
// that asked for it runs; other tests never see it. An embedded broker
// is the test's own; it refuses what Apache Kafka 4 no longer serves,
// and fails the test that tried. The tests of all packages take turns
// on a given broker, as the contract fixes the names of topics. Before
// each turn, the topics and groups of the contract, and those whose
// names begin with "test.", are deleted: tests use no other names.
func Brokers(t testing.TB) []string {
	t.Helper()
	return broker(t, backend.TopLevel(t))
}

// Shared is Brokers for parallel tests with their own names of topics and
// groups, which also begin with "test.": they share one turn on a given broker.
func Shared(t testing.TB) []string {
	t.Helper()
	if os.Getenv(testenv.EnvBrokers) == "" {
		return Brokers(t)
	}
	return broker(t, "")
}

// Parallel lets the test run in parallel if it will have a broker of its
// own. Tests that wait for their turn on a given broker would fill the
// slots that the parallel subtests of its holder wait for.
func Parallel(t *testing.T) {
	t.Helper()
	if os.Getenv(testenv.EnvBrokers) == "" {
		t.Parallel()
	}
}

// broker returns the broker of the tests of that name.
func broker(t testing.TB, name string) []string {
	t.Helper()
	given := os.Getenv(testenv.EnvBrokers)
	if given == "" {
		backend.MustBeGiven(t, testenv.EnvBrokers, "kafka", "containers")
	}
	return brokers.Acquire(t, name, func() (held, error) { return open(given) }).addresses()
}

// held is a broker that the tests of one top-level test hold.
type held interface {
	backend.Lease
	addresses() []string
}

// brokers of this package's tests.
var brokers backend.Register[held]

func open(given string) (broker held, err error) {
	if given == "" {
		broker, err = openEmbedded()
	} else {
		broker, err = openGiven(strings.Split(given, ","))
	}
	if err != nil {
		err = fmt.Errorf("no broker for the tests: %w", err)
	}
	return broker, err
}

// An embeddedLease is a broker in memory, in this process.
type embeddedLease struct{ broker *kafka.Broker }

func openEmbedded() (held, error) {
	backend.Announce("Kafka", "embedded broker")
	broker, err := kafka.Start(kafka.Config{Open: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	return embeddedLease{broker}, nil
}

func (l embeddedLease) addresses() []string { return []string{l.broker.Addr()} }

// End closes the broker, and fails the test if it sent what Apache
// Kafka 4 doesn't serve.
func (l embeddedLease) End(t testing.TB) {
	if refused := l.broker.Refused(); len(refused) > 0 {
		t.Errorf("testenv: the test used requests that Apache Kafka 4 does not serve: %s", strings.Join(refused, ", "))
	}
	if err := l.broker.Close(); err != nil {
		t.Errorf("testenv: %v", err)
	}
}

// variable makes a program of tests a broker: its port, and where it
// keeps its data.
const variable = "WEIR_TEST_SERVE_BROKER"

// serveCommand starts this program once more, as a broker.
func serveCommand(port int, dir string) (*fault.Command, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return &fault.Command{Line: []string{program}, Env: []string{fmt.Sprintf("%s=%d %s", variable, port, dir)}}, nil
}

// Tests of any package may need such a process, and a package has at
// most one TestMain.
func init() { //nolint:gochecknoinits // see above
	if at := os.Getenv(variable); at != "" {
		fmt.Fprintln(os.Stderr, serveBroker(at))
		os.Exit(1)
	}
}

// serveBroker returns only on an error: the process is killed.
func serveBroker(at string) error {
	number, dir, _ := strings.Cut(at, " ")
	port, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	if _, err := kafka.Start(kafka.Config{Open: true, Dir: dir, Port: port, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	select {}
}

// A givenLease is a turn on a broker that other tests use as well.
type givenLease struct {
	brokers []string
	turn    *filelock.Lock
}

func openGiven(brokers []string) (held, error) {
	backend.Announce("Kafka", "given by "+testenv.EnvBrokers)
	turn, err := filelock.Take(turnOf(brokers))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := sweep(ctx, brokers); err != nil {
		turn.Close()
		return nil, fmt.Errorf("broker at %s, given by %s: %w", strings.Join(brokers, ","), testenv.EnvBrokers, err)
	}
	return givenLease{brokers, turn}, nil
}

// turnOf is the file that tests lock for a broker.
func turnOf(brokers []string) string {
	id := sha256.Sum256([]byte(strings.Join(brokers, ",")))
	return filepath.Join(testenv.Common, "weir-test-turn-"+hex.EncodeToString(id[:6]))
}

func (l givenLease) addresses() []string { return l.brokers }

// End lets the next test have the broker.
func (l givenLease) End(testing.TB) {
	l.turn.Close()
}

// sweep deletes what an earlier test left.
func sweep(ctx context.Context, brokers []string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.DisableClientMetrics())
	if err != nil {
		return err
	}
	defer client.Close()
	if err := sweepGroups(ctx, client); err != nil {
		return fmt.Errorf("cannot delete the consumer groups of an earlier test: %w", err)
	}
	if err := sweepTopics(ctx, client); err != nil {
		return fmt.Errorf("cannot delete the topics of an earlier test: %w", err)
	}
	return nil
}

func contractTopics() []string {
	var names []string
	for _, t := range contract.Topics(0, 0) {
		names = append(names, t.Name)
	}
	return names
}

func contractGroups() []string {
	var names []string
	for _, g := range contract.Groups() {
		names = append(names, g.Name)
	}
	return names
}

func ours(name string, contract []string) bool {
	return strings.HasPrefix(name, "test.") || slices.Contains(contract, name)
}

func sweepTopics(ctx context.Context, client *kgo.Client) error {
	names, err := topicNames(ctx, client)
	if err != nil || len(names) == 0 {
		return err
	}
	req := kmsg.NewPtrDeleteTopicsRequest()
	for _, name := range names {
		t := kmsg.NewDeleteTopicsRequestTopic()
		t.Topic = &name
		req.Topics, req.TopicNames = append(req.Topics, t), append(req.TopicNames, name)
	}
	if _, err := req.RequestWith(ctx, client); err != nil {
		return err
	}
	return backend.Retry(ctx, func() error {
		left, err := topicNames(ctx, client)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("still there: %v", left)
		}
		return err
	})
}

// topicNames lists the broker's topics of tests.
func topicNames(ctx context.Context, client *kgo.Client) ([]string, error) {
	req := kmsg.NewPtrMetadataRequest()
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range resp.Topics {
		if t.Topic != nil && t.ErrorCode == 0 && ours(*t.Topic, contractTopics()) {
			names = append(names, *t.Topic)
		}
	}
	return names, nil
}

// sweepGroups waits, if needed, for the members of a killed test to time out.
func sweepGroups(ctx context.Context, client *kgo.Client) error {
	return backend.Retry(ctx, func() error {
		list, err := kmsg.NewPtrListGroupsRequest().RequestWith(ctx, client)
		if err != nil {
			return err
		}
		req := kmsg.NewPtrDeleteGroupsRequest()
		for _, g := range list.Groups {
			if ours(g.Group, contractGroups()) {
				req.Groups = append(req.Groups, g.Group)
			}
		}
		return deleteGroups(ctx, client, req)
	})
}

func deleteGroups(ctx context.Context, client *kgo.Client, req *kmsg.DeleteGroupsRequest) error {
	if len(req.Groups) == 0 {
		return nil
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	for _, g := range resp.Groups {
		err := kerr.ErrorForCode(g.ErrorCode)
		if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
			return fmt.Errorf("%s: %w", g.Group, err)
		}
	}
	return nil
}
