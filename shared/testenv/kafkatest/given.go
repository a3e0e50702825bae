package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/filelock"
	"github.com/weirlog/weir/shared/testenv/internal/backend"
)

// A givenLease is a turn on a broker that other tests use as well.
type givenLease struct {
	brokers []string
	turn    *os.File
}

func openGiven(brokers []string) (held, error) {
	backend.Announce("Kafka", "given by "+testenv.EnvBrokers)
	turn, err := filelock.Take(filelock.Path(strings.Join(brokers, ",")))
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
