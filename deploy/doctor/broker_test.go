package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	segmentio "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/deploy/acls"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/cluster"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/testenv"
)

var brokerFaults = []fault{
	{"stopped broker", func(_ *testing.T, i *installation, c *Config) { c.Brokers = append([]string{unusable}, i.brokers...) },
		Finding{Check: "broker", Subject: unusable, Level: Fail, Seen: "refused"}},
	{"wrong password at the brokers", func(t *testing.T, _ *installation, c *Config) {
		broker, err := kafka.Start(kafka.Config{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
		testenv.Must(t, err)
		t.Cleanup(func() { broker.Close() })
		file := filepath.Join(t.TempDir(), "password")
		testenv.Must(t, os.WriteFile(file, []byte(wrongPassword), 0o600))
		c.Brokers, c.BrokerAccess = []string{broker.Addr()}, bus.Access{User: kafka.User, PasswordFile: file, Mechanism: kafka.Mechanism}
	}, Finding{Check: "broker", Level: Fail, Seen: "refuses the user or the password"}},
	{"too few partitions", func(_ *testing.T, _ *installation, c *Config) { c.LogPartitions = 24 },
		Finding{Check: "topic", Subject: contract.TopicLogs, Level: Warn, Seen: "12 partitions, fewer than 24"}},
	{"wrong cleanup policy", func(t *testing.T, i *installation, _ *Config) {
		i.set(t, contract.TopicCredentials, "cleanup.policy", "delete", "compact")
	}, Finding{Check: "topic", Subject: contract.TopicCredentials, Level: Fail, Seen: `"delete", not "compact"`}},
	{"short retention", func(t *testing.T, i *installation, _ *Config) {
		i.set(t, contract.TopicLedger, "retention.ms", "60000", "2592000000")
	}, Finding{Check: "topic", Subject: contract.TopicLedger, Level: Fail, Seen: "retention.ms is 60000"}},
	{"leader that may lack records", func(t *testing.T, i *installation, _ *Config) {
		i.set(t, contract.TopicLogs, "unclean.leader.election.enable", "true", "false")
	}, Finding{Check: "topic", Subject: contract.TopicLogs, Level: Fail, Seen: "unclean.leader.election.enable is true"}},
	{"clock of a producer that is ahead", func(_ *testing.T, _ *installation, c *Config) {
		c.Machine.Clock = func() time.Time { return time.Now().Add(-time.Hour) }
	}, Finding{Check: "clock", Subject: "producers", Level: Fail, Seen: "in the future"}},
}

// set changes a setting of a topic until the test ends. A broker shows
// it a moment later.
func (i *installation) set(t *testing.T, topic, setting, value, before string) {
	ctx, client := context.WithoutCancel(t.Context()), &segmentio.Client{Addr: segmentio.TCP(i.brokers...)}
	write := func(value string) {
		answer, err := client.IncrementalAlterConfigs(ctx, &segmentio.IncrementalAlterConfigsRequest{
			Resources: []segmentio.IncrementalAlterConfigsRequestResource{{
				ResourceType: segmentio.ResourceTypeTopic, ResourceName: topic,
				Configs: []segmentio.IncrementalAlterConfigsRequestConfig{{Name: setting, Value: value, ConfigOperation: segmentio.ConfigOperationSet}},
			}},
		})
		testenv.Must(t, err)
		testenv.Must(t, answer.Resources[0].Error)
		testenv.Eventually(t, func() error {
			seen, err := cluster.Look(ctx, i.brokers, nil, []string{topic}, []string{setting})
			if got := seen.Topics[topic].Settings[setting]; err == nil && got != value {
				err = fmt.Errorf("%s is %q", setting, got)
			}
			return err
		})
	}
	write(value)
	t.Cleanup(func() { write(before) })
}

// onThree returns a topic as it should be on three brokers.
func onThree(want contract.Topic) cluster.Topic {
	topic := cluster.Topic{Settings: map[string]string{"min.insync.replicas": "2", "retention.bytes": "-1"}}
	for range want.Partitions {
		topic.Partitions = append(topic.Partitions, cluster.Partition{Led: true, Replicas: 3, InSync: 3})
	}
	maps.Copy(topic.Settings, want.Config)
	return topic
}

// Each fault of a topic on three brokers is found, and nothing else.
func TestTopicsOfACluster(t *testing.T) {
	topics := contract.Topics(0, 7*24*time.Hour)
	logs, state := topics[0], topics[1]
	for name, c := range map[string]struct {
		want  contract.Topic
		spoil func(*cluster.Topic)
		level Level
		seen  string
	}{
		"well":                {logs, func(*cluster.Topic) {}, OK, "partitions: 12, replicas: 3, delete"},
		"missing":             {logs, func(s *cluster.Topic) { s.Err = segmentio.UnknownTopicOrPartition }, Fail, "does not exist"},
		"hidden":              {logs, func(s *cluster.Topic) { s.Err = segmentio.TopicAuthorizationFailed }, Fail, "may not see it"},
		"unreadable":          {logs, func(s *cluster.Topic) { s.Err = errors.New("no leader answers") }, Fail, "no leader answers"},
		"no leader":           {logs, func(s *cluster.Topic) { s.Partitions[5].Led = false }, Fail, "partition 5 has no leader"},
		"copies behind":       {logs, func(s *cluster.Topic) { s.Partitions[5].InSync = 2 }, Warn, "2 of 3 replicas in sync"},
		"can't be written":    {logs, func(s *cluster.Topic) { s.Partitions[5].InSync = 1 }, Fail, "fewer than min.insync.replicas=2"},
		"one acknowledges":    {logs, func(s *cluster.Topic) { s.Settings["min.insync.replicas"] = "1" }, Fail, "min.insync.replicas is 1"},
		"all must":            {logs, func(s *cluster.Topic) { s.Settings["min.insync.replicas"] = "3" }, Warn, "without one nothing"},
		"partitions of state": {state, func(s *cluster.Topic) { s.Partitions = append(s.Partitions, s.Partitions[0]) }, Fail, "must have one"},
		"small records":       {logs, func(s *cluster.Topic) { s.Settings["max.message.bytes"] = "1000" }, Fail, "max.message.bytes is 1000"},
		"long segments":       {state, func(s *cluster.Topic) { s.Settings["segment.ms"] = "604800000" }, Warn, "segment.ms"},
		"forever":             {logs, func(s *cluster.Topic) { s.Settings["retention.ms"] = "-1" }, Warn, "longer than that is known"},
		"nearly forever":      {logs, func(s *cluster.Topic) { s.Settings["retention.ms"] = strconv.Itoa(math.MaxInt64) }, Warn, "longer than that is known"},
		"times of brokers":    {logs, func(s *cluster.Topic) { s.Settings["message.timestamp.type"] = "LogAppendTime" }, Fail, "is LogAppendTime"},
		"unpacked":            {logs, func(s *cluster.Topic) { s.Settings["compression.type"] = "uncompressed" }, Warn, "compression.type is uncompressed"},
		"bounded by size":     {logs, func(s *cluster.Topic) { s.Settings["retention.bytes"] = "1000" }, Warn, "retention.bytes is 1000"},
	} {
		seen := onThree(c.want)
		c.spoil(&seen)
		found := judgeTopic(c.want, seen, 3, erasure.Retention{})
		if len(found) != 1 || found[0].Level != c.level || !strings.Contains(found[0].Seen, c.seen) || (found[0].Fix == "") != (c.level == OK) {
			t.Errorf("%s: found %+v", name, found)
		}
	}
	logs.Config["retention.ms"] = "31536000000"
	if known := judgeTopic(logs, onThree(logs), 3, erasure.Retention{DeletionsMonths: 12}); len(known) != 1 || !strings.Contains(known[0].Seen, "12 months") {
		t.Errorf("where deletions are known for a year: found %+v", known)
	}
	if lonely := judgeTopic(logs, onThree(logs), 1, erasure.Retention{}); lonely[0].Level != OK {
		t.Errorf("on one broker: %+v", lonely)
	}
}

// Quotas of bytes are found where they hold for a user of Weir.
func TestQuotas(t *testing.T) {
	for name, c := range map[string]struct {
		of    map[string]string
		rates map[string]float64
		level Level // no finding: OK
		seen  string
	}{
		"a tight one of a service":  {map[string]string{"user": "ingest"}, map[string]float64{"producer_byte_rate": 1024}, Fail, "user ingest: producer_byte_rate is 1024"},
		"a wide one of each user":   {map[string]string{"user": ""}, map[string]float64{"consumer_byte_rate": 5e7}, Warn, "each user: consumer_byte_rate is 50000000"},
		"of a client of each user":  {map[string]string{"client-id": "weir"}, map[string]float64{"producer_byte_rate": 1}, Fail, "client-id weir: producer_byte_rate is 1"},
		"of another program's user": {map[string]string{"user": "billing"}, map[string]float64{"producer_byte_rate": 1}, OK, ""},
		"of its own user":           {map[string]string{"user": "weir", "client-id": ""}, map[string]float64{"producer_byte_rate": 1}, Fail, "each client-id, user weir: producer"},
		"of other things":           {map[string]string{"user": "ingest"}, map[string]float64{"request_percentage": 200}, OK, ""},
	} {
		checker := &brokerChecker{checker: newChecker(Config{}), signIn: bus.Access{User: "weir"}}
		checker.quota(cluster.Quota{Of: c.of, Rates: c.rates})
		found := checker.report.Findings
		if c.level == OK && len(found) == 0 {
			continue
		}
		if len(found) != 1 || found[0].Level != c.level || !strings.HasPrefix(found[0].Subject+": "+found[0].Seen, c.seen) {
			t.Errorf("%s: found %+v", name, found)
		}
	}
	of := quotaEntity(cluster.Quota{Of: map[string]string{"user": "ingest", "client-id": ""}})
	if of != ` --entity-type clients --entity-default --entity-type users --entity-name "ingest"` {
		t.Errorf("the tool's arguments are %s", of)
	}
}

// A user without the right to write its services' topics is found.
func TestAccess(t *testing.T) {
	topics := contract.Topics(0, 0)
	c := &brokerChecker{checker: newChecker(Config{Modules: []string{"grouping"}}), seen: cluster.Cluster{Topics: map[string]cluster.Topic{}}}
	for _, topic := range topics {
		c.seen.Topics[topic.Name] = cluster.Topic{Operations: cluster.Read | cluster.Describe}
		c.access(topic)
	}
	if len(c.report.Findings) != 3 { // its own, and the two gathered ones
		t.Errorf("found %+v", c.report.Findings)
	}
	for _, f := range c.report.Findings {
		if f.Level != Fail || f.Seen != "the user lacks Write" {
			t.Errorf("found %+v", f)
		}
	}
}

// The doctor's own user may write nothing, and the report states that it
// doesn't see the rights of services.
func TestAccessOfTheDoctor(t *testing.T) {
	c := &brokerChecker{checker: newChecker(Config{}), signIn: bus.Access{User: acls.Doctor}, seen: cluster.Cluster{Topics: map[string]cluster.Topic{}}}
	for _, topic := range contract.Topics(0, 0) {
		c.seen.Topics[topic.Name] = cluster.Topic{Operations: cluster.Read | cluster.Describe | cluster.DescribeConfigs}
		c.access(topic)
	}
	c.unseen()
	if found := c.report.Findings; len(found) != 1 || found[0].Level != OK || !strings.Contains(found[0].Seen, "no rights of others") {
		t.Errorf("found %+v", found)
	}
}

// Misspelled settings are found, other names are not.
func TestMisspelled(t *testing.T) {
	all, err := catalogue()
	testenv.Must(t, err)
	known := variables(all)
	for name, meant := range map[string]string{
		"WEIR_BROKER": "WEIR_BROKERS", "WEIR_DATABSE_URL_FILE": "WEIR_DATABASE_URL", "WEIR_BROKERS": "", "WEIR_DATABASE_URL_FILE": "",
		"WEIR_TEST_DATABASE_URL": "", "HOME": "", "WEIR_SECRETS": "",
	} {
		if got, _ := known.nearest(name); got != meant {
			t.Errorf("%s is like %q, want %q", name, got, meant)
		}
	}
	if len(known) < 100 || len(secretVariables(all)) < 5 {
		t.Errorf("%d settings and %d secrets are known", len(known), len(secretVariables(all)))
	}
}
