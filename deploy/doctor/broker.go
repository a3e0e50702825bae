package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/deploy/acls"
	"github.com/weirlog/weir/deploy/endpoint"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/cluster"
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/contract"
)

// bus checks the brokers and the topics.
func (e *examination) bus(ctx context.Context) {
	const fix = "Set WEIR_BROKERS to addresses of brokers (host:port), and WEIR_BROKERS_USER with WEIR_BROKERS_PASSWORD_FILE where they ask for a user."
	var err error
	if e.brokers, e.signIn = e.Brokers, e.BrokerAccess; len(e.brokers) == 0 {
		if e.brokers, e.signIn, err = endpoint.EmbeddedBroker(e.DataDir); err == nil {
			e.ready(ctx)
		}
	}
	if err == nil {
		e.dialer, err = e.signIn.Dialer()
	}
	if err != nil {
		e.report.add(Fail, "broker", "brokers", err.Error(), fix)
		return
	}
	reached := 0
	for _, address := range e.brokers {
		if e.reach(ctx, address) {
			reached++
		}
	}
	if reached > 0 {
		e.topics(ctx)
	}
}

// reach connects to one broker as services do: with the protocol's
// versions, and authentication.
func (e *examination) reach(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, e.CheckTimeout)
	defer cancel()
	if err := cluster.Reach(ctx, address, e.dialer); err != nil {
		e.report.add(Fail, "broker", address, err.Error(), brokerFix(err))
		return false
	}
	seen := "answers, speaks the versions of the protocol that are needed"
	if e.signIn.Encrypts() {
		seen += ", over TLS"
	}
	if e.signIn.User != "" {
		seen += ", lets " + e.signIn.User + " in"
	}
	e.report.add(OK, "broker", address, seen, "")
	return true
}

func brokerFix(err error) string {
	switch {
	case errors.Is(err, kafka.SASLAuthenticationFailed):
		return "Correct WEIR_BROKERS_USER or the secret in the file of WEIR_BROKERS_PASSWORD_FILE or WEIR_BROKERS_TOKEN_FILE, or make the user at the brokers."
	case errors.Is(err, bus.ErrEncryption):
		return "Correct the setting or the certificate that the finding names: services take another file without a restart."
	case errors.Is(err, kafka.UnsupportedSASLMechanism):
		return "Set WEIR_BROKERS_MECHANISM to one that the brokers have."
	case strings.Contains(err.Error(), "speaks"):
		return "Upgrade the broker: Apache Kafka 3.1 or later."
	}
	return "Start the broker, and check host and port, name resolution, advertised.listeners and firewalls between."
}

// topics checks each topic of Weir.
func (e *examination) topics(ctx context.Context) {
	wanted := slices.DeleteFunc(contract.Topics(e.LogPartitions, e.LogRetention), func(topic contract.Topic) bool {
		return !e.reads(topic) && !e.writes(topic)
	})
	names := make([]string, len(wanted))
	for i, topic := range wanted {
		names[i] = topic.Name
	}
	ok := e.look(ctx, "topic", "all", "Look at the brokers' logs.", func(ctx context.Context) (err error) {
		e.seen, err = cluster.Look(ctx, e.brokers, e.dialer, names, topicSettings)
		return err
	})
	if !ok {
		return
	}
	for _, topic := range wanted {
		e.report.Findings = append(e.report.Findings, judgeTopic(topic, e.seen.Topics[topic.Name], len(e.seen.Brokers), e.Deletions)...)
		e.access(topic)
	}
	e.unseen()
	if _, looked := e.seen.Topics[contract.TopicLogs]; !looked {
		return
	}
	e.look(ctx, "clock", "producers", "Look at the brokers' logs.", func(ctx context.Context) error {
		newest, err := e.newestRecord(ctx)
		if err == nil {
			e.producers(newest)
		}
		return err
	})
}

// reads reports whether an examined module reads a topic: then its user
// must be allowed to.
func (e *examination) reads(topic contract.Topic) bool {
	return slices.ContainsFunc(topic.Readers, e.includes)
}

func (e *examination) writes(topic contract.Topic) bool {
	return slices.ContainsFunc(topic.Writers(), e.includes)
}

// readOnly reports whether the user is the doctor's own, without the
// right to write.
func (e *examination) readOnly() bool { return e.signIn.User == acls.Doctor }

// unseen reports what is not checked.
func (e *examination) unseen() {
	if e.readOnly() {
		e.report.add(OK, "access", "services", e.signIn.User+" sees topics and no rights of others: sign in as a service to see what it may", "")
	}
}

// access checks whether the user may do with a topic what its services do.
func (e *examination) access(topic contract.Topic) {
	seen := e.seen.Topics[topic.Name]
	if seen.Err != nil {
		return
	}
	var lacks []string
	for _, needed := range []struct {
		operation cluster.Operations
		name      string
		wanted    bool
	}{{cluster.Read, "Read", e.reads(topic)}, {cluster.Describe, "Describe", true}, {cluster.Write, "Write", e.writes(topic) && !e.readOnly()}} {
		if needed.wanted && !seen.Operations.Allow(needed.operation) {
			lacks = append(lacks, needed.name)
		}
	}
	if len(lacks) > 0 {
		e.report.add(Fail, "access", topic.Name, "the user lacks "+strings.Join(lacks, ", "),
			fmt.Sprintf("Grant it, weir acls prints all: kafka-acls.sh --add --allow-principal User:… --operation %s --topic %s.",
				strings.Join(lacks, " --operation "), topic.Name))
	}
}

// looked limits the partitions to read from.
const looked = 12

// newestRecord returns the time of the newest record of weir.logs.v1.
func (e *examination) newestRecord(ctx context.Context) (newest time.Time, err error) {
	partitions := e.seen.Topics[contract.TopicLogs].Partitions
	for p, partition := range partitions[:min(len(partitions), looked)] {
		at, err := e.recordAt(ctx, contract.TopicLogs, p, max(partition.Start, partition.End-1), partition.End)
		if err != nil {
			return newest, err
		}
		if at.After(newest) {
			newest = at
		}
	}
	return newest, nil
}

// recordAt returns the time of the oldest record in a range of offsets;
// zero without any.
func (e *examination) recordAt(ctx context.Context, topic string, partition int, from, to int64) (oldest time.Time, err error) {
	if from >= to {
		return oldest, nil
	}
	reader := &logrange.Reader{Brokers: e.brokers, Dialer: e.dialer, Topic: topic}
	_, err = reader.Read(ctx, partition, from, to, func(r bus.Record) { oldest = earlier(oldest, r.Time) })
	return oldest, err
}
