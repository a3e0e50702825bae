package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/deploy/acls"
	"github.com/weirlog/weir/deploy/endpoint"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/cluster"
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/erasure"
)

// A brokerChecker checks the brokers and the topics.
type brokerChecker struct {
	checker

	brokers []string
	signIn  bus.Access
	dialer  *bus.Dialer
	seen    cluster.Cluster // the brokers' answer; no topics without one
}

// bus checks the brokers and the topics.
func (c *brokerChecker) bus(ctx context.Context) {
	const fix = "Set WEIR_BROKERS to addresses of brokers (host:port), and WEIR_BROKERS_USER with WEIR_BROKERS_PASSWORD_FILE where they ask for a user."
	var err error
	if c.brokers, c.signIn = c.Brokers, c.BrokerAccess; len(c.brokers) == 0 {
		if c.brokers, c.signIn, err = endpoint.EmbeddedBroker(c.DataDir); err == nil {
			c.ready(ctx)
		}
	}
	if err == nil {
		c.dialer, err = c.signIn.Dialer()
	}
	if err != nil {
		c.report.add(Fail, "broker", "brokers", err.Error(), fix)
		return
	}
	reached := 0
	for _, address := range c.brokers {
		if c.reach(ctx, address) {
			reached++
		}
	}
	if reached > 0 {
		c.topics(ctx)
		c.quotas(ctx)
	}
}

// reach connects to one broker as services do: with the protocol's
// versions, and authentication.
func (c *brokerChecker) reach(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, c.CheckTimeout)
	defer cancel()
	if err := cluster.Reach(ctx, address, c.dialer); err != nil {
		c.report.add(Fail, "broker", address, err.Error(), brokerFix(err))
		return false
	}
	seen := "answers, speaks the versions of the protocol that are needed"
	if c.signIn.Encrypts() {
		seen += ", over TLS"
	}
	if c.signIn.User != "" {
		seen += ", lets " + c.signIn.User + " in"
	}
	if host, _, err := net.SplitHostPort(address); err == nil && !c.signIn.Encrypts() && !c.isPrivate(host) {
		c.report.add(Warn, "broker", address, "the connection is not encrypted: anybody in between can read all entries",
			"Give the broker a listener with TLS, and set WEIR_BROKERS_TLS.")
	}
	c.report.add(OK, "broker", address, seen, "")
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
func (c *brokerChecker) topics(ctx context.Context) {
	wanted := slices.DeleteFunc(contract.Topics(c.LogPartitions, c.LogRetention), func(topic contract.Topic) bool {
		return !c.reads(topic) && !c.writes(topic)
	})
	names := make([]string, len(wanted))
	for i, topic := range wanted {
		names[i] = topic.Name
	}
	ok := c.look(ctx, "topic", "all", "Look at the brokers' logs.", func(ctx context.Context) (err error) {
		c.seen, err = cluster.Look(ctx, c.brokers, c.dialer, names, topicSettings)
		return err
	})
	if !ok {
		return
	}
	for _, topic := range wanted {
		c.report.Findings = append(c.report.Findings, judgeTopic(topic, c.seen.Topics[topic.Name], len(c.seen.Brokers), c.Deletions)...)
		c.access(topic)
	}
	c.unseen()
	if _, looked := c.seen.Topics[contract.TopicLogs]; !looked {
		return
	}
	c.look(ctx, "clock", "producers", "Look at the brokers' logs.", func(ctx context.Context) error {
		newest, err := c.newestRecord(ctx)
		if err == nil {
			c.producers(newest)
		}
		return err
	})
}

// reads reports whether an examined module reads a topic: then its user
// must be allowed to.
func (c *brokerChecker) reads(topic contract.Topic) bool {
	return slices.ContainsFunc(topic.Readers, c.includes)
}

func (c *brokerChecker) writes(topic contract.Topic) bool {
	return slices.ContainsFunc(topic.Writers(), c.includes)
}

// readOnly reports whether the user is the doctor's own, without the
// right to write.
func (c *brokerChecker) readOnly() bool { return c.signIn.User == acls.Doctor }

// unseen reports what is not checked.
func (c *brokerChecker) unseen() {
	if c.readOnly() {
		c.report.add(OK, "access", "services", c.signIn.User+" sees topics and no rights of others: sign in as a service to see what it may", "")
	}
}

// access checks whether the user may do with a topic what its services do.
func (c *brokerChecker) access(topic contract.Topic) {
	seen := c.seen.Topics[topic.Name]
	if seen.Err != nil {
		return
	}
	var lacks []string
	for _, needed := range []struct {
		operation cluster.Operations
		name      string
		wanted    bool
	}{{cluster.Read, "Read", c.reads(topic)}, {cluster.Describe, "Describe", true}, {cluster.Write, "Write", c.writes(topic) && !c.readOnly()}} {
		if needed.wanted && !seen.Operations.Allow(needed.operation) {
			lacks = append(lacks, needed.name)
		}
	}
	if len(lacks) > 0 {
		c.report.add(Fail, "access", topic.Name, "the user lacks "+strings.Join(lacks, ", "),
			fmt.Sprintf("Grant it, weir acls prints all: kafka-acls.sh --add --allow-principal User:… --operation %s --topic %s.",
				strings.Join(lacks, " --operation "), topic.Name))
	}
}

// looked limits the partitions to read from.
const looked = 12

// newestRecord returns the time of the newest record of weir.logs.v1.
func (c *brokerChecker) newestRecord(ctx context.Context) (newest time.Time, err error) {
	partitions := c.seen.Topics[contract.TopicLogs].Partitions
	for p, partition := range partitions[:min(len(partitions), looked)] {
		at, err := c.recordAt(ctx, contract.TopicLogs, p, max(partition.Start, partition.End-1), partition.End)
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
func (c *brokerChecker) recordAt(ctx context.Context, topic string, partition int, from, to int64) (oldest time.Time, err error) {
	if from >= to {
		return oldest, nil
	}
	reader := &logrange.Reader{Brokers: c.brokers, Dialer: c.dialer, Topic: topic}
	_, err = reader.Read(ctx, partition, from, to, func(r bus.Record) { oldest = earlier(oldest, r.Time) })
	return oldest, err
}

var topicSettings = []string{
	"cleanup.policy", "retention.ms", "retention.bytes", "max.message.bytes", "segment.ms", "min.insync.replicas", "unclean.leader.election.enable",
	"message.timestamp.type", "compression.type",
}

// A topicCheck compares one topic with its contract.
type topicCheck struct {
	want     contract.Topic
	seen     cluster.Topic
	brokers  int
	deleted  erasure.Retention
	findings []Finding
}

// judgeTopic compares a topic with its contract on so many brokers,
// with the given retention of deletions.
func judgeTopic(want contract.Topic, seen cluster.Topic, brokers int, deleted erasure.Retention) []Finding {
	l := &topicCheck{want: want, seen: seen, brokers: brokers, deleted: deleted}
	if seen.Err != nil {
		l.missing()
		return l.findings
	}
	l.partitions()
	l.copies()
	l.leaders()
	l.policy()
	l.records()
	l.retention()
	if len(l.findings) == 0 {
		l.add(OK, fmt.Sprintf("partitions: %d, replicas: %d, %s", len(seen.Partitions), l.replicas(), seen.Settings["cleanup.policy"]), "")
	}
	return l.findings
}

func (l *topicCheck) add(level Level, seen, fix string) {
	l.findings = append(l.findings, Finding{Check: "topic", Subject: l.want.Name, Level: level, Seen: oneLine(seen), Fix: fix})
}

func (l *topicCheck) missing() {
	switch {
	case errors.Is(l.seen.Err, kafka.UnknownTopicOrPartition):
		l.add(Fail, "it does not exist", "Create it: weir topics, with the same settings.")
	case errors.Is(l.seen.Err, kafka.TopicAuthorizationFailed):
		l.add(Fail, "the user may not see it",
			fmt.Sprintf("Grant it: kafka-acls.sh --add --allow-principal User:… --operation Read --operation Describe --topic %s.", l.want.Name))
	default:
		l.add(Fail, l.seen.Err.Error(), "Look at the brokers' logs.")
	}
}

// partitions compares their number. A state topic must have one: its
// order is that of all records (decision 2).
func (l *topicCheck) partitions() {
	got, want := len(l.seen.Partitions), l.want.Partitions
	switch {
	case want == 1 && got != 1:
		l.add(Fail, fmt.Sprintf("it has %d partitions, and must have one: who follows it needs one order", got),
			"Recreate the topic, and make its module publish again.")
	case got < want:
		l.add(Warn, fmt.Sprintf("it has %d partitions, fewer than %d: so many consumers of a kind share the work at most", got, want),
			fmt.Sprintf("kafka-topics.sh --alter --topic %s --partitions %d, or set WEIR_LOG_PARTITIONS=%d.", l.want.Name, want, got))
	}
}

// replicas returns the smallest number of replicas of a partition.
func (l *topicCheck) replicas() int {
	least := l.brokers
	for _, p := range l.seen.Partitions {
		least = min(least, p.Replicas)
	}
	return least
}

// wantedReplicas is the number of replicas with enough brokers.
const wantedReplicas = 3

// copies checks whether acknowledged records survive the loss of a
// broker. A single broker has no replicas.
func (l *topicCheck) copies() {
	inSync, _ := strconv.Atoi(l.seen.Settings["min.insync.replicas"])
	replicas := l.replicas()
	for p, partition := range l.seen.Partitions {
		switch {
		case !partition.Led:
			l.add(Fail, fmt.Sprintf("partition %d has no leader", p), "Start the brokers that have its replicas.")
		case partition.InSync < inSync:
			l.add(Fail, fmt.Sprintf("partition %d has %d replicas in sync, fewer than min.insync.replicas=%d: nothing can be written", p, partition.InSync, inSync),
				"Start the brokers that are away.")
		case partition.InSync < partition.Replicas:
			l.add(Warn, fmt.Sprintf("partition %d has %d of %d replicas in sync", p, partition.InSync, partition.Replicas),
				"Start the brokers that are away, or wait until they have caught up.")
		}
	}
	if l.brokers < wantedReplicas {
		return
	}
	if replicas < wantedReplicas {
		l.add(Warn, fmt.Sprintf("it has %d replicas on %d brokers", replicas, l.brokers), "kafka-reassign-partitions.sh: three replicas of each partition.")
	}
	if replicas > 1 && inSync < 2 {
		l.add(Fail, fmt.Sprintf("min.insync.replicas is %d: what one broker alone has is acknowledged, and lost with it", inSync), l.alter("min.insync.replicas=2"))
	}
	if replicas > 1 && inSync >= replicas {
		l.add(Warn, fmt.Sprintf("min.insync.replicas is %d of %d replicas: without one nothing can be written", inSync, replicas),
			l.alter("min.insync.replicas="+strconv.Itoa(replicas-1)))
	}
}

// leaders checks whether only brokers with all records may lead.
func (l *topicCheck) leaders() {
	const unclean = "unclean.leader.election.enable"
	if l.seen.Settings[unclean] == "true" {
		l.add(Fail, unclean+" is true: a broker that lacks records may lead, and they are lost", l.alter(unclean+"=false"))
	}
}

func (l *topicCheck) alter(setting string) string {
	return fmt.Sprintf("kafka-configs.sh --alter --topic %s --add-config %s.", l.want.Name, setting)
}

func (l *topicCheck) policy() {
	const name = "cleanup.policy"
	if got, want := l.seen.Settings[name], l.want.Config[name]; got != want {
		l.add(Fail, fmt.Sprintf("%s is %q, not %q: what is needed would be removed, or nothing ever", name, got, want), l.alter(name+"="+want))
	}
	const largest = "max.message.bytes"
	if want, given := number(l.want.Config[largest]); given {
		if got, known := number(l.seen.Settings[largest]); known && got < want {
			l.add(Fail, fmt.Sprintf("%s is %d, less than %d: large entries could not be written", largest, got, want),
				l.alter(fmt.Sprintf("%s=%d", largest, want)))
		}
	}
	const segment = "segment.ms"
	if want, given := number(l.want.Config[segment]); given {
		if got, known := number(l.seen.Settings[segment]); known && got > want {
			l.add(Warn, fmt.Sprintf("%s is %d, more than %d: for so long what is deleted may stay", segment, got, want),
				l.alter(fmt.Sprintf("%s=%d", segment, want)))
		}
	}
}

// records checks whether brokers keep records as they come.
func (l *topicCheck) records() {
	const stamped, packed = "message.timestamp.type", "compression.type"
	if got := l.seen.Settings[stamped]; got == "LogAppendTime" {
		l.add(Fail, stamped+" is LogAppendTime: the time at which entries were accepted is lost", l.alter(stamped+"=CreateTime"))
	}
	if got := l.seen.Settings[packed]; got != "" && got != "producer" {
		l.add(Warn, fmt.Sprintf("%s is %s: brokers pack each record again, or keep it at several times its size", packed, got),
			l.alter(packed+"=producer"))
	}
}

// retention checks whether records stay as long as a consumer may be
// down. -1 is forever.
func (l *topicCheck) retention() {
	const name = "retention.ms"
	want, given := number(l.want.Config[name])
	if !given {
		return
	}
	if got, known := number(l.seen.Settings[name]); known && got >= 0 && (want < 0 || got < want) {
		l.add(Fail, fmt.Sprintf("%s is %d, less than %d: a consumer that is away for longer loses records", name, got, want),
			l.alter(fmt.Sprintf("%s=%d", name, want)))
	}
	l.outlivesDeletions(name)
	const size = "retention.bytes"
	if got, known := number(l.seen.Settings[size]); known && got >= 0 {
		l.add(Warn, fmt.Sprintf("%s is %d: under load records go before their time", size, got), l.alter(size+"=-1"))
	}
}

// outlivesDeletions checks whether records of a deletion may return
// after it is forgotten.
func (l *topicCheck) outlivesDeletions(name string) {
	known := int64(l.deleted.Months()) * 28 * 24 * time.Hour.Milliseconds()
	if got, given := number(l.seen.Settings[name]); given && (got < 0 || got > known) {
		l.add(Warn, fmt.Sprintf("%s is %d: it may keep records of what was deleted for longer than that is known, %d months",
			name, got, l.deleted.Months()), "Set WEIR_DELETIONS_MONTHS of every service to more, or keep records for a shorter time.")
	}
}

func number(text string) (n int64, ok bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}
